"""The engine's plans and processes, to look at."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from onebeat.admin.pages import ReadOnlyAdmin
from onebeat.admin.words import instant
from onebeat.models import Action, Beat, PeriodicTask, TaskState


@admin.register(TaskState)
class TaskStateAdmin(ReadOnlyAdmin):
    """Plans: when each task is due next."""

    due = instant("due_at", _("next nominal time"))
    wake = instant("wake_at", _("leaves at"))
    mark = instant("water_mark", _("decided up to"))
    begun = instant("anchor", _("grid begins"))
    list_display = ["task_name", "due", "wake", "mark", "quarantine"]
    search_fields = ["task__name"]
    ordering = ["wake_at"]
    fields = ["task_name", "task_id", "due", "wake", "mark", "begun", "quarantine", "rule", "version"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskState]:
        """With the task's name, or none if the task is gone: the key is no constraint, so a join could lose rows."""
        name = PeriodicTask.objects.filter(pk=OuterRef("pk")).values("name")
        rows: QuerySet[TaskState] = super().get_queryset(request).annotate(onebeat_name=Subquery(name))
        return rows

    @admin.display(description=_("task"), ordering="onebeat_name")
    def task_name(self, state: TaskState) -> str:
        """The name of the task."""
        return state.__dict__["onebeat_name"] or f"{state.pk}"


@admin.register(Beat)
class BeatAdmin(ReadOnlyAdmin):
    """Scheduler processes."""

    started = instant("started_at", _("started"))
    seen = instant("seen_at", _("last seen"))
    able = instant("able_since", _("able to send since"))
    stopped = instant("stopped_at", _("stopped"))
    list_display = ["host", "pid", "version", "started", "seen", "able", "stopped", "lag_ms", "skew_ms"]
    fields = ["host", "pid", "version", "started", "seen", "able", "stopped", "lag_ms", "skew_ms"]
    ordering = ["-seen_at"]


@admin.register(Action)
class ActionAdmin(ReadOnlyAdmin):
    """What people and programs did to tasks: who, when, why."""

    when = instant("at", _("when"))
    list_display = ["when", "verb", "task_name", "by", "why", "detail"]
    list_filter = ["verb"]
    search_fields = ["task_name", "by"]
    ordering = ["-pk"]
    fields = ["when", "verb", "task_name", "task_id", "by", "why", "detail"]
