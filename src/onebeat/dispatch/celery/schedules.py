"""Schedules as objects in Celery's manner, for code that reads `.schedule`. onebeat plans from the rows, not from
these.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from celery import schedules
from celery.utils.time import maybe_make_aware

from onebeat.core import clock

#: Seconds that stand for "never" in an answer of `is_due`.
NEVER_CHECK_TIMEOUT = 100_000_000


#: Their published types leave out what subclasses use.
_Crontab: Any = schedules.crontab
_BaseSchedule: Any = schedules.BaseSchedule


class TzAwareCrontab(_Crontab):  # type: ignore[misc]
    """A Celery crontab in a zone of its own; `tz` None: the app's."""

    def __init__(
        self,
        minute: Any = "*",
        hour: Any = "*",
        day_of_week: Any = "*",
        day_of_month: Any = "*",
        month_of_year: Any = "*",
        tz: tzinfo | None = UTC,
        app: Any = None,
    ) -> None:
        if tz is not None:
            self.tz = tz
        # By name: their order is not the same in all versions.
        super().__init__(
            minute=minute, hour=hour, day_of_week=day_of_week, day_of_month=day_of_month, month_of_year=month_of_year,
            nowfun=self.nowfunc, app=app,
        )  # fmt: skip

    def nowfunc(self) -> datetime:
        """The present instant in the zone."""
        return clock.host_now().astimezone(self.tz)

    def is_due(self, last_run_at: datetime) -> Any:
        """`(is_due, seconds until it is worth asking again)`. Celery goes by the wall clock of what it is given."""
        return super().is_due(last_run_at.astimezone(self.tz))

    def __reduce__(self) -> tuple[Any, ...]:
        this: Any = self  # Celery keeps the texts it was given in these
        fields = (
            this._orig_minute, this._orig_hour, this._orig_day_of_week,
            this._orig_day_of_month, this._orig_month_of_year,
        )  # fmt: skip
        return type(self), (*fields, self.tz)

    def __eq__(self, other: object) -> bool:
        # Not as Celery's, which asks whether both have one function for the present instant.
        return isinstance(other, schedules.crontab) and self._value() == TzAwareCrontab._value(other)

    def __hash__(self) -> int:
        return hash((*map(frozenset, self._value()[:-1]), str(self.tz)))

    def _value(self: Any) -> tuple[Any, ...]:
        return self.minute, self.hour, self.day_of_week, self.day_of_month, self.month_of_year, self.tz


class clocked(_BaseSchedule):  # type: ignore[misc]
    """One instant."""

    def __init__(self, clocked_time: datetime, nowfun: Any = None, app: Any = None) -> None:
        self.clocked_time = maybe_make_aware(clocked_time)
        super().__init__(nowfun=nowfun, app=app)

    def remaining_estimate(self, last_run_at: Any) -> Any:
        """Time left until the instant; negative after it."""
        return self.clocked_time - self.now()

    def is_due(self, last_run_at: Any) -> Any:
        """`(is_due, seconds)`: due from the instant on, and then there is nothing to ask for again."""
        left = self.remaining_estimate(None).total_seconds()
        return schedules.schedstate(left <= 0, NEVER_CHECK_TIMEOUT if left <= 0 else left)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, clocked) and self.clocked_time == other.clocked_time

    def __hash__(self) -> int:
        return hash(self.clocked_time)

    def __repr__(self) -> str:
        return f"<clocked: {self.clocked_time}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.clocked_time, self.nowfun)


def of_value(kind: str, *value: Any) -> Any:
    """The schedule of a kind with this value, as `OnebeatConfig.celery_schedule` describes them.

    What Celery cannot express (`L`, `mon#2`) raises its ParseException; a solar one needs ephem.
    """
    if kind == "interval":
        every, period = value
        return schedules.schedule(timedelta(**{period: every}))
    if kind == "crontab":
        minute, hour, day_of_month, month_of_year, day_of_week, zone = value
        return TzAwareCrontab(minute, hour, day_of_week, day_of_month, month_of_year, tz=zone)
    if kind == "solar":
        make: Any = schedules.solar
        return make(*value)
    return clocked(*value)


def crontab_error(minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str) -> Exception | None:
    """What Celery raises for these crontab fields: a ValueError, its ParseException, or None for ones that it reads."""
    try:
        schedules.crontab(
            minute=minute, hour=hour, day_of_month=day_of_month, month_of_year=month_of_year, day_of_week=day_of_week
        )
    except (ValueError, schedules.ParseException) as error:
        return error
    return None
