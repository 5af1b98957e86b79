"""What every kind of recurrence is, and the instants it speaks in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Recurrence(Protocol):
    """A rule that names instants."""

    def after(self, instant: datetime) -> datetime | None:
        """The first nominal time strictly later than `instant`, or None when none follows.

        `instant` is aware, in any zone; the answer is aware, in UTC. Never raises for an aware instant, never
        reads a clock. Raises ValueError for a naive one, because a guess at its zone would be silent.
        """
        ...


def utc(instant: datetime) -> datetime:
    """`instant` in UTC; the nearest instant that a datetime can hold, at the two ends of the calendar.

    Raises ValueError for a naive instant.
    """
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError("an aware instant is needed")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if instant.year == 1 else datetime.max.replace(tzinfo=UTC)
