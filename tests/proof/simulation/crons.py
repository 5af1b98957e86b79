"""When crontabs near a change of the clocks are due: every minute is looked at. No Django here."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from tests.core.oracle import Drawn, runs, window

ZONE = "Europe/Paris"
#: Near these a history may begin: the clocks go forward, back, and stay as they are.
CHANGES = (
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 6, 10, 1, tzinfo=UTC),
)


def _every_day(wall: datetime) -> bool:
    return True


def _drawn(minute: str, hour: str) -> Drawn:
    def numbers(text: str, size: int) -> frozenset[int]:
        start, _, step = text.partition("/")
        first, _, last = start.partition("-")
        whole = range(size) if first == "*" else range(int(first), int(last or first) + 1)
        return frozenset(whole[:: int(step or 1)])

    return Drawn((minute, hour, "*", "*", "*"), numbers(minute, 60), numbers(hour, 24), (_every_day,) * 3)


@cache
def cron_times(minute: str, hour: str, middle: datetime) -> tuple[datetime, ...]:
    """Every run around `middle`, by a look at each minute."""
    return tuple(runs(_drawn(minute, hour), window(ZONE, middle)))
