"""A brute-force oracle: every minute of UTC is looked at through zoneinfo, and the set of runs is read off.

Written from the words of the rule, not from the engine. It has no parser: a random rule is drawn as text together with
the values that the text was drawn from.
"""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
Day = Callable[[datetime], bool]


@dataclass(frozen=True)
class Drawn:
    """A random rule: its texts, and what they were drawn from."""

    texts: tuple[str, str, str, str, str]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: tuple[Day, Day, Day]

    @property
    def fixed(self) -> bool:
        return self.texts[0][0] != "*" and self.texts[1][0] != "*"

    def matches(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and all(matches(wall) for matches in self.days)


@dataclass(frozen=True)
class Window:
    """Every minute of some days around a change of one zone's clocks: the instant and what the wall clock says."""

    zone: str
    minutes: tuple[tuple[datetime, datetime], ...]

    @property
    def start(self) -> datetime:
        """Asked from here on. The minutes before only serve to know which wall times have been."""
        return self.minutes[0][0] + 2 * DAY


def runs(drawn: Drawn, window: Window) -> list[datetime]:
    """Every run after the start of the window, by looking at each minute."""
    found = []
    seen: set[datetime] = set()
    before: datetime | None = None
    for instant, wall in window.minutes:
        due = drawn.matches(wall)
        if drawn.fixed:
            due = due and wall not in seen
            if before is not None and timedelta(0) < (gap := wall - before - MINUTE) < timedelta(hours=3):
                due = due or any(drawn.matches(before + n * MINUTE) for n in range(1, gap // MINUTE + 1))
            seen.add(wall)
        if due and instant > window.start:
            found.append(instant)
        before = wall
    return found


@cache
def changes(zone: str, first: int = 1960, last: int = 2045) -> tuple[datetime, ...]:
    """The instants at which a zone's offset changes, where the offsets on both sides are whole minutes."""
    tz = ZoneInfo(zone)
    found = []
    instant = datetime(first, 1, 1, tzinfo=UTC)
    while instant.year < last:
        start, end = instant, instant + DAY
        old, new = start.astimezone(tz).utcoffset(), end.astimezone(tz).utcoffset()
        if old != new:
            while end - start > MINUTE:
                middle = start + (end - start) / 2
                middle = middle.replace(second=0, microsecond=0)
                start, end = (middle, end) if middle.astimezone(tz).utcoffset() == old else (start, middle)
            if old is not None and new is not None and not (old % MINUTE or new % MINUTE):
                found.append(end)
        instant += DAY
    return tuple(found)


@cache
def window(zone: str, middle: datetime) -> Window:
    """Three days and a half before the middle to a day and a half after it."""
    tz = ZoneInfo(zone)
    instants = [middle + n * MINUTE for n in range(-84 * 60, 36 * 60)]
    return Window(zone, tuple((instant, instant.astimezone(tz).replace(tzinfo=None, fold=0)) for instant in instants))


def draw(rng: random.Random, near: datetime) -> Drawn:
    """A random rule with a good chance of runs close to a wall time."""
    minute, minutes = _numbers(rng, 0, 59, near.minute, star=0.3)
    hour, hours = _numbers(rng, 0, 23, near.hour, star=0.35)
    dates = [_day_of_month(rng, near), _month(rng, near), _day_of_week(rng, near)]
    texts = (minute, hour, dates[0][0], dates[1][0], dates[2][0])
    return Drawn(texts, minutes, hours, (dates[0][1], dates[1][1], dates[2][1]))


def _numbers(rng: random.Random, low: int, high: int, near: int, star: float) -> tuple[str, frozenset[int]]:
    size = high - low + 1
    if rng.random() < star:
        step = rng.choice([1, 1, 2, 3, 5, 7, 10, 15, 20, 30, size])
        return ("*" if step == 1 else f"*/{step}"), frozenset(range(low, high + 1, step))
    texts, values = [], set()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        a = low + (near - low + rng.randint(-2, 2)) % size if rng.random() < 0.6 else rng.randint(low, high)
        b = low + (a - low + rng.choice([1, 2, 3, 5, 10, size // 2])) % size
        step = rng.choice([1, 1, 2, 3, 7])
        kind = rng.random()
        if kind < 0.6:
            texts.append(rng.choice([str(a), f"{a:02}"]))
            values.add(a)
            continue
        texts.append(f"{a}-{b}" if step == 1 else f"{a}-{b}/{step}")
        walk = [low + (a - low + n) % size for n in range((b - a) % size + 1)]
        values.update(walk[::step])
    return rng.choice([",", ", "]).join(texts), frozenset(values)


def _day_of_month(rng: random.Random, near: datetime) -> tuple[str, Day]:
    if rng.random() < 0.6:
        return "*", lambda wall: True
    if rng.random() < 0.2:
        return "L", lambda wall: wall.day == calendar.monthrange(wall.year, wall.month)[1]
    text, days = _numbers(rng, 1, 31, near.day, star=0.2)
    return text, lambda wall: wall.day in days


def _month(rng: random.Random, near: datetime) -> tuple[str, Day]:
    if rng.random() < 0.8:
        return "*", lambda wall: True
    text, months = _numbers(rng, 1, 12, near.month, star=0.2)
    return text, lambda wall: wall.month in months


def _day_of_week(rng: random.Random, near: datetime) -> tuple[str, Day]:
    if rng.random() < 0.6:
        return "*", lambda wall: True
    today = near.isoweekday() % 7
    if rng.random() < 0.7:
        text, days = _numbers(rng, 0, 6, today, star=0.1)
        return text, lambda wall: wall.isoweekday() % 7 in days
    name = calendar.day_name[(today - 1) % 7].lower()
    if rng.random() < 0.5:
        return f"{name[:3]}#L", lambda wall: _is(wall, today) and (wall + 7 * DAY).month != wall.month
    n = (near.day - 1) // 7 + 1
    return f"{name}#{n}", lambda wall: _is(wall, today) and 7 * (n - 1) < wall.day <= 7 * n


def _is(wall: datetime, weekday: int) -> bool:
    return wall.isoweekday() % 7 == weekday
