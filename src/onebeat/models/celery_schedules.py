"""Schedules as objects in Celery's manner, for code that reads `.schedule`. onebeat plans from the rows, not from
these.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any

from celery import schedules
from celery.utils.time import maybe_make_aware


class ZonedCrontab(schedules.crontab):
    """A Celery crontab in a zone of its own."""

    def __init__(self, *fields: Any, tz: tzinfo | None = None, app: Any = None) -> None:
        self._zone = tz
        super().__init__(*fields, nowfun=self._now, app=app)

    def _now(self) -> datetime:
        return datetime.now(self.tz)

    @property
    def tz(self) -> Any:
        """The zone of the rule; the app's where none was given."""
        return self._zone or super().tz

    @tz.setter
    def tz(self, value: Any) -> None:
        self._zone = value

    def __reduce__(self) -> tuple[Any, ...]:
        this: Any = self  # Celery keeps the texts it was given in these
        fields = (
            this._orig_minute, this._orig_hour, this._orig_day_of_week,
            this._orig_day_of_month, this._orig_month_of_year,
        )  # fmt: skip
        return _zoned, (fields, self._zone)


def _zoned(fields: tuple[Any, ...], tz: tzinfo | None) -> ZonedCrontab:
    return ZonedCrontab(*fields, tz=tz)


class clocked(schedules.BaseSchedule):
    """One instant."""

    def __init__(self, clocked_time: datetime, nowfun: Any = None, app: Any = None) -> None:
        self.clocked_time = maybe_make_aware(clocked_time)
        super().__init__(nowfun=nowfun, app=app)

    def remaining_estimate(self, last_run_at: Any) -> Any:
        """Time left until the instant; negative after it."""
        return self.clocked_time - self.now()

    def is_due(self, last_run_at: Any) -> Any:
        """`(True, None)` from the instant on, else `(False, seconds until it)`."""
        left = self.remaining_estimate(None).total_seconds()
        return (True, None) if left <= 0 else (False, left)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, clocked) and self.clocked_time == other.clocked_time

    def __hash__(self) -> int:
        return hash(self.clocked_time)

    def __repr__(self) -> str:
        return f"<clocked: {self.clocked_time}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.clocked_time,)
