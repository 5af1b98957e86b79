"""The one grammar of the five crontab fields.

It is the dialect of Celery's crontab (lists, wrapping ranges, steps counted from the start of their range,
names by prefix), with 7 for Sunday, `L` for the last day of a month, and `mon#2` and `fri#L` for the second
Monday and the last Friday of a month. What Celery reads and then ignores in part is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from onebeat.errors import InvalidSchedule

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")

#: The number that stands for the last one of a month in `Field.nth`.
LAST = 6


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the five fields: its numbers, its names, and words for what it accepts."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    extra: str = ""

    @property
    def accepts(self) -> str:
        """What may stand here, in one line."""
        names = f", names such as {self.names[1][:3]}" if self.names else ""
        numbers = f"use numbers {self.low} to {self.high}{names}"
        return f"{numbers}, *, ranges a-b, steps */n or a-b/n, lists a,b{self.extra}"

    @property
    def full(self) -> int:
        """Every value, as a mask."""
        return (2 << self.high) - (1 << self.low)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("minute", 0, 59),
        Kind("hour", 0, 23),
        Kind("day_of_month", 1, 31, extra=", L for the last day"),
        Kind("month_of_year", 1, 12, MONTHS),
        Kind(
            "day_of_week",
            0,
            6,
            WEEKDAYS,
            ", 7 for Sunday, mon#2 for the second Monday, fri#L for the last Friday",
        ),
    )
}
#: What is said where `L` is written in a way that only other programs know. No day has an L in its name.
_ABOUT_L = {
    "day_of_month": "L is the last day and stands alone or in a list; no number, range, step or W goes with it",
    "day_of_week": "the last weekday of its kind is written with #, for example fri#L",
}
DATE_FIELDS = ("day_of_month", "month_of_year", "day_of_week")


@dataclass(frozen=True, slots=True)
class Field:
    """One field, read. `mask` has a bit for each plain value.

    `nth` holds (weekday, n) pairs from `mon#2`, with n = LAST for `#L`; `last` says that `L` is in the list.
    """

    text: str
    mask: int
    nth: frozenset[tuple[int, int]] = frozenset()
    last: bool = False

    @property
    def starred(self) -> bool:
        """Whether the text starts with a star, which is what cron(8) of Debian calls a wildcard field."""
        return self.text.startswith("*")


def canonical_field(field: str, value: object) -> str:
    """One crontab field (a key of KINDS) as its canonical text.

    `value` is text, an int or an iterable of ints and texts. Names and 7 become numbers, lists are sorted,
    parts that say nothing new go; a text that is tidy already stays as it is. Raises InvalidSchedule naming the
    field.
    """
    return read(field, value).text


def read(field: str, value: object) -> Field:
    """One crontab field (a key of KINDS), read from text, an int or an iterable of them. Raises InvalidSchedule."""
    kind = KINDS.get(field)
    if kind is None:
        raise InvalidSchedule(field, None, f"not a crontab field; the five are {', '.join(KINDS)}")
    return _read_text(kind, value if type(value) is str else _as_text(kind, value))


def _as_text(kind: Kind, value: object) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | memoryview):
        # The order of a set says nothing, and a star that is in it must count as a text that begins with one.
        parts = [_as_text(kind, part) for part in value]
        return ",".join(sorted(parts, key=lambda part: not part.lstrip().startswith("*")))
    raise InvalidSchedule(kind.name, value, kind.accepts)


@lru_cache(maxsize=8192)
def _read_text(kind: Kind, text: str) -> Field:
    return combined(kind, [_read_part(kind, token.strip(" \t"), text) for token in text.split(",")])


def combined(kind: Kind, parts: list[Field]) -> Field:
    """The list of those parts as one field, tidied. Whether it counts as starred is decided by the first part."""
    starred = parts[0].starred
    mask = 0
    for part in parts:
        mask |= part.mask
    if mask == kind.full and (starred or kind.name in DATE_FIELDS):
        return Field("*", mask)
    if not starred:
        # A star later in a list stands for all values but does not make a wildcard: spell it as a range.
        parts = [_spelled_out(kind, part) for part in parts]
    # Under a weekday that always matches, its second and its last say nothing.
    parts = [part for part in parts if not part.nth or not all(mask >> day & 1 for day, _ in part.nth)]
    texts = ",".join(part.text for part in _without_repeats(parts))
    nth = frozenset().union(*(part.nth for part in parts))
    return Field(texts, mask, nth, any(part.last for part in parts))


def _spelled_out(kind: Kind, part: Field) -> Field:
    if not part.starred:
        return part
    return between(kind, kind.low, kind.high, int(part.text[2:] or 1))


def _without_repeats(parts: list[Field]) -> list[Field]:
    """The parts that say something of their own, wildcards first, then by their first number."""
    kept: list[Field] = []
    for part in sorted(parts, key=lambda part: (not part.starred, -part.mask.bit_count(), part.text)):
        named = part.nth or part.last
        if part not in kept and (named or not any(part.mask | other.mask == other.mask for other in kept)):
            kept.append(part)
    return sorted(kept, key=_place)


def _place(part: Field) -> tuple[bool, bool, int, str]:
    digits = part.text.lstrip("*/").partition("-")[0].partition("#")[0]
    return not part.starred, bool(part.nth or part.last), int(digits) if digits.isdigit() else 0, part.text


def _read_part(kind: Kind, token: str, whole: str) -> Field:
    if not token:
        raise InvalidSchedule(kind.name, whole, f"it has an empty part; {kind.accepts}")
    if kind.name == "day_of_month" and token in ("L", "l"):
        return Field("L", 0, last=True)
    if kind.name == "day_of_week" and "#" in token:
        return _read_nth(kind, token)
    if kind.name in _ABOUT_L and "L" in token.upper():
        raise InvalidSchedule(kind.name, token, _ABOUT_L[kind.name])
    body, slash, step_text = token.partition("/")
    step = _digits(step_text) if slash else 1
    if not step:
        raise InvalidSchedule(kind.name, token, f"a step is a number from 1 up; {kind.accepts}")
    if body == "*":
        return every(kind, step)
    first_text, dash, last_text = body.partition("-")
    if slash and not dash:
        raise InvalidSchedule(kind.name, token, f"a step needs a range or * before it; {kind.accepts}")
    first = _number(kind, first_text, token)
    last = _number(kind, last_text, token) if dash else first
    return between(kind, first, last, step)


def every(kind: Kind, step: int) -> Field:
    """Every value of the field, or every nth from its lowest on."""
    return Field("*" if step == 1 else f"*/{step}", _mask(range(kind.low, kind.high + 1)[::step]))


def between(kind: Kind, first: int, last: int, step: int = 1) -> Field:
    """The values from first to last, every nth; through the end of the field if last comes before first."""
    if kind.name == "day_of_week":
        if first % 7 == 0 and last == 7 and first != last:
            last = 6
        first, last = first % 7, last % 7
    if first <= last:
        values = list(range(first, last + 1))
    else:
        values = [*range(first, kind.high + 1), *range(kind.low, last + 1)]
    if step == 1 and len(values) > kind.high - kind.low:
        first, last = kind.low, kind.high  # all of them, whichever comes first
    values = values[::step]
    text = str(first) if len(values) == 1 else f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"
    return Field(text, _mask(values))


def _read_nth(kind: Kind, token: str) -> Field:
    day_text, _, n_text = token.partition("#")
    day = _number(kind, day_text, token) % 7
    n = LAST if n_text in ("L", "l") else _digits(n_text)
    if not n or (n > 5 and n_text not in ("L", "l")):
        raise InvalidSchedule(kind.name, token, f"after # comes 1 to 5 or L; {kind.accepts}")
    return Field(f"{day}#{'L' if n == LAST else n}", 0, frozenset({(day, n)}))


def _number(kind: Kind, word: str, token: str) -> int:
    number = _digits(word)
    if number is None:
        number = _named(kind, word.lower())
    high = 7 if kind.name == "day_of_week" else kind.high
    if number is None or not kind.low <= number <= high:
        raise InvalidSchedule(kind.name, word or token, kind.accepts)
    return number


def _digits(word: str) -> int | None:
    # int() would also take "+5", "1_0" and other scripts' digits. Nine digits are more than any field holds.
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else None


def _named(kind: Kind, word: str) -> int | None:
    if len(word) < 3:
        return None
    return next((kind.low + i for i, name in enumerate(kind.names) if name.startswith(word)), None)


def _mask(values: Iterable[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask
