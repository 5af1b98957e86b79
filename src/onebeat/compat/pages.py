"""The page of a task as django-celery-beat has it, with its actions, for those who build on it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from celery import current_app
from django import forms
from django.contrib import admin, messages
from django.db.models import Case, QuerySet, Value, When
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import PeriodicTaskForm as OurForm
from onebeat.admin import TaskOptionsInline
from onebeat.compat.widgets import TaskChoiceField
from onebeat.core.headers import NAME_HEADER, free
from onebeat.models import PeriodicTask, PeriodicTasks
from onebeat.models.task_rules import SCHEDULES, check_json

__all__ = ["PeriodicTaskAdmin", "PeriodicTaskForm"]

if TYPE_CHECKING:
    TaskModelAdmin = admin.ModelAdmin[PeriodicTask]
else:
    TaskModelAdmin = admin.ModelAdmin


class PeriodicTaskForm(OurForm):
    """A task, whose name is chosen among the registered ones (`regtask`) or typed (`task`)."""

    regtask = TaskChoiceField(label=_("Task (registered)"), required=False)
    task = forms.CharField(label=_("Task (custom)"), required=False, max_length=200)

    class Meta:
        model = PeriodicTask
        exclude = ()

    def clean(self) -> dict[str, Any]:
        """What is chosen counts before what is typed."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if data.get("regtask"):
            data["task"] = data["regtask"]
        if not data.get("task"):
            self.add_error("task", _("Need name of task"))
        return data

    def clean_args(self) -> Any:
        """A JSON list."""
        return self._json("args")

    def clean_kwargs(self) -> Any:
        """A JSON object."""
        return self._json("kwargs")

    def _json(self, name: str) -> Any:
        check_json(name, self.cleaned_data[name])
        return self.cleaned_data[name]


class PeriodicTaskAdmin(TaskModelAdmin):
    """Tasks, with onebeat's options below."""

    form = PeriodicTaskForm
    model = PeriodicTask
    celery_app = current_app
    inlines = [TaskOptionsInline]
    date_hierarchy = "start_time"
    list_display = ("name", "enabled", "scheduler", "interval", "start_time", "last_run_at", "one_off")
    list_filter = ["enabled", "one_off", "task", "start_time", "last_run_at"]
    actions = ("enable_tasks", "disable_tasks", "toggle_tasks", "run_tasks")
    search_fields = ("name", "task")
    fieldsets = (
        (None, {"fields": ("name", "regtask", "task", "enabled", "description")}),
        (
            _("Schedule"),
            {"fields": (*SCHEDULES[:2], "crontab_translation", *SCHEDULES[2:], "start_time", "last_run_at", "one_off")},
        ),
        (_("Arguments"), {"fields": ("args", "kwargs"), "classes": ("collapse",)}),
        (
            _("Execution options"),
            {
                "fields": ("expires", "expire_seconds", "queue", "exchange", "routing_key", "priority", "headers"),
                "classes": ("collapse",),
            },
        ),
    )
    readonly_fields = ("last_run_at", "crontab_translation")

    def get_queryset(self, request: Any) -> QuerySet[PeriodicTask]:
        """With all that the list shows."""
        return super().get_queryset(request).select_related(*SCHEDULES)

    def crontab_translation(self, obj: PeriodicTask) -> str:
        """The task's crontab in words."""
        return "" if obj.crontab is None else obj.crontab.human_readable

    @admin.action(description=_("Enable selected tasks"))
    def enable_tasks(self, request: Any, queryset: QuerySet[PeriodicTask]) -> None:
        """Enable them; the first run is the first match from now on."""
        count = queryset.update(enabled=True)
        self._told(request, ngettext("{0} task was enabled", "{0} tasks were enabled", count).format(count))

    @admin.action(description=_("Disable selected tasks"))
    def disable_tasks(self, request: Any, queryset: QuerySet[PeriodicTask]) -> None:
        """Disable them."""
        count = queryset.update(enabled=False)
        self._told(request, ngettext("{0} task was disabled", "{0} tasks were disabled", count).format(count))

    @admin.action(description=_("Toggle activity of selected tasks"))
    def toggle_tasks(self, request: Any, queryset: QuerySet[PeriodicTask]) -> None:
        """Enable the disabled ones and the other way round."""
        count = self._toggle_tasks_activity(queryset)
        self._told(request, ngettext("{0} task was toggled", "{0} tasks were toggled", count).format(count))

    @admin.action(description=_("Run selected tasks"))
    def run_tasks(self, request: Any, queryset: QuerySet[PeriodicTask]) -> None:
        """Send each of them now, beside its schedule. None is sent if one of them is not registered here."""
        app = self.celery_app
        app.loader.import_default_modules()
        tasks = list(queryset)
        for task in tasks:
            if task.task not in app.tasks:
                self.message_user(
                    request, gettext('task "{0}" not found').format(task.task), level=messages.ERROR
                )  # fmt: skip
                return
        for task in tasks:
            options: dict[str, Any] = {"queue": task.queue} if task.queue else {}
            headers = {**free(json.loads(task.headers or "{}")), NAME_HEADER: task.name}
            args, kwargs = json.loads(task.args or "[]"), json.loads(task.kwargs or "{}")
            app.tasks[task.task].apply_async(args=args, kwargs=kwargs, headers=headers, **options)
        self._told(request, ngettext("{0} task was run", "{0} tasks were run", len(tasks)).format(len(tasks)))

    def _toggle_tasks_activity(self, queryset: QuerySet[PeriodicTask]) -> int:
        return queryset.update(enabled=Case(When(enabled=True, then=Value(False)), default=Value(True)))

    def _told(self, request: Any, text: str) -> None:
        PeriodicTasks.update_changed()
        self.message_user(request, text)
