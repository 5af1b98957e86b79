"""The schedules of a declaration: frozen values, read by the one parser when they are made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from onebeat.core.recurrence import UNITS, Interval, Solar, zone
from onebeat.core.recurrence import Cron as _Rule
from onebeat.errors import InvalidSchedule

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: What the column of an interval holds.
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Cron:
    """A crontab line: minute, hour, day of month, month, day of week, which must all match.

    `tz`: the IANA zone whose wall clock is meant; None: that of the Celery app (`CELERY_TIMEZONE`), else UTC.
    Raises `InvalidSchedule` naming the field: for a text outside the grammar (`docs/recurrence.md`), a rule that can
    never match, an unknown zone.
    """

    line: str
    tz: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.line, str):
            raise InvalidSchedule("cron", repr(self.line), 'a line of five fields is needed, such as "0 9 * * mon-fri"')
        _Rule.parse(self.line, "UTC" if self.tz is None else zone(self.tz))

    def texts(self) -> tuple[str, ...]:
        """The five fields in canonical form, in the order of the line."""
        rule = _Rule.parse(self.line)
        return rule.minute, rule.hour, rule.day_of_month, rule.month_of_year, rule.day_of_week


@dataclass(frozen=True, slots=True, init=False)
class Every:
    """Elapsed time: `Every(minutes=10)`, or `Every(timedelta(...))`. Several units are added up.

    The grid begins at `start_time` of the declaration, else where the task is made. Raises `InvalidSchedule`, naming
    the field, for a period that is not longer than zero or that no row can hold.
    """

    every: int
    #: One of days, hours, minutes, seconds, microseconds.
    period: str

    def __init__(
        self,
        period: timedelta | None = None,
        /,
        *,
        days: int = 0,
        hours: int = 0,
        minutes: int = 0,
        seconds: int = 0,
        microseconds: int = 0,
    ) -> None:
        given = {"days": days, "hours": hours, "minutes": minutes, "seconds": seconds, "microseconds": microseconds}
        for name, number in given.items():
            if isinstance(number, bool) or not isinstance(number, int):
                raise InvalidSchedule(name, repr(number), "a whole number is needed")
        if period is not None and not isinstance(period, timedelta):
            raise InvalidSchedule("every", repr(period), "a timedelta is needed, or a unit by name: Every(minutes=10)")
        named = [name for name, number in given.items() if number]
        if period is None and len(named) == 1:  # as it was written
            every, unit = given[named[0]], named[0]
        else:
            try:
                whole = timedelta(**given) + (period or timedelta(0))
            except OverflowError:
                raise InvalidSchedule("every", None, f"at most {timedelta.max.days} days") from None
            unit = next((one for one in UNITS if not whole % timedelta(**{one: 1})), UNITS[-1])
            every = whole // timedelta(**{unit: 1})
        Interval.of(every, unit, _EPOCH)
        if every > _MOST:
            raise InvalidSchedule("every", every, f"at most {_MOST} {unit}")
        object.__setattr__(self, "every", every)
        object.__setattr__(self, "period", unit)


Rule = Cron | Every | Solar

__all__ = ["Cron", "Every", "Rule", "Solar"]
