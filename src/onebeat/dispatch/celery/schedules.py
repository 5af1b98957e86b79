"""Schedules as objects in Celery's manner, for code that reads `.schedule`. onebeat plans from the rows, not from
these.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from celery import Celery, schedules
from celery.utils.time import maybe_make_aware

from onebeat.core import clock

#: Seconds that stand for "never" in an answer of `is_due`.
NEVER_CHECK_TIMEOUT = 100_000_000

#: What Celery takes for one field of a crontab.
CronField = str | int | list[int]
_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")


class TzAwareCrontab(schedules.crontab):
    """A Celery crontab in a zone of its own; `tz` None: the app's."""

    tz: tzinfo  # type: ignore[assignment]

    def __init__(
        self,
        minute: CronField = "*",
        hour: CronField = "*",
        day_of_week: CronField = "*",
        day_of_month: CronField = "*",
        month_of_year: CronField = "*",
        tz: tzinfo | None = UTC,
        app: Celery | None = None,
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

    def is_due(self, last_run_at: datetime) -> schedules.schedstate:
        """`(is_due, seconds until it is worth asking again)`. Celery goes by the wall clock of what it is given."""
        return super().is_due(last_run_at.astimezone(self.tz))

    def __reduce__(self) -> tuple[object, ...]:
        # Celery keeps the texts that it was given in these.
        return type(self), (*(getattr(self, f"_orig_{name}") for name in _FIELDS), self.tz)

    def __eq__(self, other: object) -> bool:
        # Not as Celery's, which asks whether both have one function for the present instant.
        return isinstance(other, schedules.crontab) and _crontab_value(self) == _crontab_value(other)

    def __hash__(self) -> int:
        return hash((*(frozenset(getattr(self, name)) for name in _FIELDS), str(self.tz)))


def _crontab_value(crontab: schedules.crontab) -> tuple[object, ...]:
    return tuple(getattr(crontab, name) for name in (*_FIELDS, "tz"))


class clocked(schedules.BaseSchedule):
    """One instant."""

    def __init__(
        self, clocked_time: datetime, nowfun: Callable[[], datetime] | None = None, app: Celery | None = None
    ) -> None:
        self.clocked_time = maybe_make_aware(clocked_time)
        super().__init__(nowfun=nowfun, app=app)

    def remaining_estimate(self, last_run_at: datetime | None) -> timedelta:
        """Time left until the instant; negative after it."""
        return self.clocked_time - self.now()

    def is_due(self, last_run_at: datetime | None) -> schedules.schedstate:
        """`(is_due, seconds)`: due from the instant on, and then there is nothing to ask for again."""
        left = self.remaining_estimate(None).total_seconds()
        return schedules.schedstate(left <= 0, NEVER_CHECK_TIMEOUT if left <= 0 else left)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, clocked) and self.clocked_time == other.clocked_time

    def __hash__(self) -> int:
        return hash(self.clocked_time)

    def __repr__(self) -> str:
        return f"<clocked: {self.clocked_time}>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.clocked_time, self.nowfun)  # type: ignore[attr-defined]


def of_value(kind: str, *value: Any) -> schedules.BaseSchedule:
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
        return schedules.solar(*value)
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
