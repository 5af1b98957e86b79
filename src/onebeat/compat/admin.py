"""`django_celery_beat.admin`: onebeat's pages, and the parts that other forms are built from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from celery import current_app
from django import forms
from django.contrib import admin

from onebeat.admin import (
    ClockedScheduleAdmin,
    CrontabScheduleAdmin,
    IntervalScheduleAdmin,
    PeriodicTaskAdmin,
    PeriodicTaskForm,
    SolarScheduleAdmin,
)
from onebeat.admin.schedules import ScheduleAdmin
from onebeat.models import PeriodicTask

__all__ = [
    "ClockedScheduleAdmin",
    "CrontabScheduleAdmin",
    "IntervalScheduleAdmin",
    "PeriodicTaskAdmin",
    "PeriodicTaskForm",
    "PeriodicTaskInline",
    "ScheduleAdmin",
    "SolarScheduleAdmin",
    "TaskChoiceField",
    "TaskSelectWidget",
]

if TYPE_CHECKING:
    TaskInline = admin.TabularInline[PeriodicTask, Any]
else:
    TaskInline = admin.TabularInline


class _TaskChoices:
    """The registered tasks as choices, looked up each time: tasks are registered late."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __iter__(self) -> Iterator[tuple[str, str]]:
        self.app.loader.import_default_modules()
        yield "", ""
        yield from ((name, name) for name in sorted(self.app.tasks) if not name.startswith("celery."))


class TaskSelectWidget(forms.Select):
    """A select of the tasks that the Celery app has registered."""

    celery_app = current_app

    def tasks_as_choices(self) -> list[tuple[str, str]]:
        """The choices, the empty one first."""
        return list(_TaskChoices(self.celery_app))

    @property
    def choices(self) -> Any:
        """As `tasks_as_choices`."""
        return self.tasks_as_choices()

    @choices.setter
    def choices(self, value: Any) -> None:
        """What a field hands over has no say."""


class TaskChoiceField(forms.ChoiceField):
    """A field for the name of a task; a name that this process has not registered is as good."""

    widget = TaskSelectWidget

    def valid_value(self, value: Any) -> bool:
        """Any."""
        return True


class PeriodicTaskInline(TaskInline):
    """The tasks that use a schedule, to look at."""

    model = PeriodicTask
    fields = readonly_fields = ("name", "task", "args", "kwargs")
    can_delete = False
    extra = 0
    show_change_link = True

    def has_add_permission(self, request: Any, obj: Any = None) -> bool:
        """No."""
        return False
