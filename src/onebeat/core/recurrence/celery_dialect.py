"""The reading of crontab rows that were taken over: bug for bug what Celery's crontab makes of the text.

Celery reads each part of a list from its start and forgets what follows the piece it understood, takes
numbers in every form that Python's int() does, and knows a name by its first three letters whichever field it
stands in. A row keeps the meaning it had. A row that Celery could not read ran for nobody, and starts no
surprise run now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo
from typing import Literal

from onebeat.core.recurrence.cron import Cron
from onebeat.core.recurrence.fields import (
    KINDS,
    MONTHS,
    WEEKDAYS,
    Field,
    Kind,
    between,
    combined,
    every,
    read,
)
from onebeat.errors import InvalidSchedule

Verdict = Literal["kept", "expanded", "disabled"]

_RANGE = re.compile(r"(\w+?)-(\w+)(/(\w*))?")
_STEPPED_STAR = re.compile(r"\*/(\w*)")
_NAMES = {name[:3]: number for number, name in enumerate(WEEKDAYS)} | {
    name[:3]: number for number, name in enumerate(MONTHS, start=1)
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a row that was taken over means.

    `kept`: `cron` is the row's own text. `expanded`: the text means something else to the grammar of new
    rows, or nothing; `cron` holds what Celery made of it. `disabled`: it could never run, `cron` is None.
    `why` is one line, empty when kept.
    """

    verdict: Verdict
    cron: Cron | None
    why: str = ""


def read_taken_over(
    minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str, tz: str | tzinfo = "UTC"
) -> Reading:
    """Read the five texts of a taken-over row. Never raises for texts."""
    texts = (minute, hour, day_of_month, month_of_year, day_of_week)
    try:
        fields = [as_celery_reads(name, text) for name, text in zip(KINDS, texts, strict=True)]
        m, h, dom, moy, dow = (field.text for field in fields)
        cron = Cron(m, h, dom, moy, dow, tz)
    except InvalidSchedule as error:
        return Reading("disabled", None, str(error))
    changed = [
        f"{name}: {text!r} has been read as {field.text!r}"
        for name, text, field in zip(KINDS, texts, fields, strict=True)
        if not _reads_alike(name, text, field)
    ]
    return Reading("expanded", cron, "; ".join(changed)) if changed else Reading("kept", cron)


def as_celery_reads(field: str, text: str) -> Field:
    """One field as Celery reads it, in canonical text. Raises InvalidSchedule where Celery raises."""
    kind = KINDS[field]
    return combined(kind, [_part(kind, part, text) for part in text.split(",")])


def _reads_alike(name: str, text: str, field: Field) -> bool:
    try:
        return read(name, text) == field
    except InvalidSchedule:
        return False


def _part(kind: Kind, part: str, text: str) -> Field:
    if not part:
        raise InvalidSchedule(kind.name, text, "it has an empty part, which Celery could not read")
    if found := _RANGE.match(part):
        first, last, slash, step = found.groups()
        return between(kind, _number(kind, first), _number(kind, last), _step(kind, part, step) if slash else 1)
    if found := _STEPPED_STAR.match(part):
        return every(kind, _step(kind, part, found[1]))
    if part in ("*", "*\n"):
        return every(kind, 1)
    number = _number(kind, part)
    return between(kind, number, number)


def _step(kind: Kind, part: str, step: str) -> int:
    number = _int(step)
    if not number:
        raise InvalidSchedule(kind.name, part, "it has no step that Celery could read")
    return number


def _number(kind: Kind, word: str) -> int:
    number = _int(word)
    if number is None:
        number = _NAMES.get(word[:3].lower())
    if number is None or word.startswith("-") or not kind.low <= number <= kind.high:
        raise InvalidSchedule(kind.name, word, f"Celery could not read it as a value from {kind.low} to {kind.high}")
    return number


def _int(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None
