"""Elapsed time on a fixed grid."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from onebeat.core.recurrence.base import utc
from onebeat.errors import InvalidSchedule

UNITS = ("days", "hours", "minutes", "seconds", "microseconds")


@dataclass(frozen=True, slots=True)
class Interval:
    """The grid anchor, anchor + period, anchor + 2 periods and so on, in elapsed time.

    Clock changes do not touch it: every hour is an hour. Raises InvalidSchedule (field "every") unless the period
    is longer than zero, ValueError for a naive anchor.
    """

    period: timedelta
    anchor: datetime

    def __post_init__(self) -> None:
        if self.period <= timedelta(0):
            raise InvalidSchedule("every", self.period, "a period longer than zero is needed")
        object.__setattr__(self, "anchor", utc(self.anchor))

    @classmethod
    def of(cls, every: int, unit: str, anchor: datetime) -> Interval:
        """`every` times the unit, from `anchor`. Raises InvalidSchedule, field "every" or "period"."""
        if unit not in UNITS:
            raise InvalidSchedule("period", unit, f"one of {', '.join(UNITS)} is needed")
        if not isinstance(every, int) or isinstance(every, bool) or every < 1:
            raise InvalidSchedule("every", every, "a whole number from 1 up is needed")
        try:
            period = timedelta(**{unit: every})
        except OverflowError:
            raise InvalidSchedule("every", every, f"at most {timedelta.max.days} days") from None
        return cls(period, anchor)

    def after(self, instant: datetime) -> datetime | None:
        """Before the anchor, the anchor; else the next point of the grid strictly later than `instant`."""
        instant = utc(instant)
        if instant < self.anchor:
            return self.anchor
        try:
            return self.anchor + ((instant - self.anchor) // self.period + 1) * self.period
        except OverflowError:
            return None

    def newest(self, instant: datetime) -> datetime | None:
        """The last point of the grid at or before `instant`; None before the anchor."""
        instant = utc(instant)
        if instant < self.anchor:
            return None
        return self.anchor + (instant - self.anchor) // self.period * self.period
