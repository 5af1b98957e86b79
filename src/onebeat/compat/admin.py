"""`django_celery_beat.admin`: the pages as they were, for those who build on them. The admin itself has onebeat's own.

Nothing here is registered: a subclass takes the place of onebeat's page with `admin.site.unregister` and `register`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from onebeat.admin import secrets
from onebeat.admin.pages import SavesChanges, UnchangedForm
from onebeat.compat.pages import PeriodicTaskAdmin, PeriodicTaskForm
from onebeat.compat.utils import is_database_scheduler
from onebeat.compat.widgets import TaskChoiceField, TaskSelectWidget
from onebeat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    PeriodicTasks,
    SolarSchedule,
)

__all__ = [
    "ClockedSchedule",
    "ClockedScheduleAdmin",
    "CrontabSchedule",
    "CrontabScheduleAdmin",
    "IntervalSchedule",
    "IntervalScheduleAdmin",
    "PeriodicTask",
    "PeriodicTaskAdmin",
    "PeriodicTaskForm",
    "PeriodicTaskInline",
    "PeriodicTasks",
    "ScheduleAdmin",
    "SolarSchedule",
    "SolarScheduleAdmin",
    "TaskChoiceField",
    "TaskSelectWidget",
    "is_database_scheduler",
]

if TYPE_CHECKING:
    TaskInline = admin.TabularInline[PeriodicTask, Any]
else:
    TaskInline = admin.TabularInline


class PeriodicTaskInline(TaskInline):
    """The tasks that use a schedule, to look at."""

    model = PeriodicTask
    fields = readonly_fields = ("name", "task", "args", "kwargs")
    can_delete = False
    extra = 0
    show_change_link = True
    verbose_name = _("Periodic tasks using this schedule")
    verbose_name_plural = verbose_name

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """What is shown of each task, its secret values masked."""
        names = [str(name) for name in flatten(super().get_fields(request, obj))]
        return [f"masked_{name}" if secrets.words() and name in ("args", "kwargs") else name for name in names]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        """All of it."""
        return [*super().get_readonly_fields(request, obj), "masked_args", "masked_kwargs"]

    @admin.display(description=_("arguments"))
    def masked_args(self, task: PeriodicTask) -> str:
        """The arguments, their secret values masked."""
        return str(secrets.masked(task.args))

    @admin.display(description=_("keyword arguments"))
    def masked_kwargs(self, task: PeriodicTask) -> str:
        """The keyword arguments, their secret values masked."""
        return str(secrets.masked(task.kwargs))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody adds a task here."""
        return False


class ScheduleAdmin(SavesChanges):
    """A schedule, with the tasks that use it."""

    form = UnchangedForm

    inlines = [PeriodicTaskInline]


class ClockedScheduleAdmin(ScheduleAdmin):
    """Instants."""

    fields = ("clocked_time",)
    list_display = ("clocked_time",)


class CrontabScheduleAdmin(ScheduleAdmin):
    """Crontabs."""

    list_display = ("__str__", "human_readable")
    fields = ("human_readable", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
    readonly_fields = ("human_readable",)


class SolarScheduleAdmin(ScheduleAdmin):
    """Solar events."""


class IntervalScheduleAdmin(ScheduleAdmin):
    """Intervals."""
