"""What the pages say about schedules and instants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.utils import timezone
from django.utils.translation import gettext

from onebeat.core.describe import describe
from onebeat.core.errors import RuleError
from onebeat.core.recurrence import Clocked, Interval, Recurrence, Solar
from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.rules import SCHEDULES
from onebeat.models.takenover import look_up

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def schedule_words(schedule: Any) -> str:
    """A schedule row in words; as it is written when no rule can be read from it."""
    try:
        return describe(_recurrence(schedule), gettext)
    except (RuleError, TypeError, ValueError, OverflowError):
        return str(schedule)


class WithReadings:
    """Mixed into the admin of rows that lead to crontabs: what Celery made of those that were taken over is looked up
    once for a page of the list.
    """

    def get_changelist_instance(self, request: Any) -> Any:
        """With the readings of the page's crontabs."""
        page = super().get_changelist_instance(request)  # type: ignore[misc]
        rows = [row if isinstance(row, CrontabSchedule) else row.crontab for row in page.result_list]
        look_up(page.queryset.db, [row for row in rows if row is not None])
        return page


def task_words(task: PeriodicTask) -> str:
    """The schedule of a task in words. A broken row may have none, or several: each is named."""
    rows = [getattr(task, kind) for kind in SCHEDULES]
    return ", ".join(schedule_words(row) for row in rows if row is not None)


def _recurrence(schedule: Any) -> Recurrence:
    match schedule:
        case IntervalSchedule():
            return Interval.of(schedule.every, schedule.period, _EPOCH)
        case CrontabSchedule():
            return schedule.recurrence()
        case SolarSchedule():
            return Solar(*schedule.value())
        case ClockedSchedule():
            return Clocked(to_utc(schedule.clocked_time))
    raise TypeError(f"no schedule: {schedule!r}")


def shown(instant: datetime | None) -> str | None:
    """An instant of the engine's tables on the current zone's wall clock (TIME_ZONE with USE_TZ off), to the second,
    or to the millisecond where it has a part of one: Django's own format ends at the minute.
    """
    if instant is None:
        return None
    local = from_utc(instant)
    if local.tzinfo is not None:
        local = timezone.localtime(local)
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f".{local.microsecond // 1000:03}" if local.microsecond else "")


def instant(name: str, label: Any) -> Callable[[Any, Any], str | None]:
    """A read-only column for the engine's instant `name`, sortable."""

    @admin.display(description=label, ordering=name)
    def column(model_admin: Any, row: Any) -> str | None:
        return shown(getattr(row, name))

    return column
