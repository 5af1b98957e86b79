"""Tasks: what to send, when, and what became of it last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.forms import PeriodicTaskForm, TaskOptionsForm
from onebeat.admin.words import WithReadings, shown, task_words
from onebeat.models import PeriodicTask, TaskOptions, TaskState
from onebeat.models.rules import SCHEDULES
from onebeat.store import migrated

if TYPE_CHECKING:
    TaskModelAdmin = admin.ModelAdmin[PeriodicTask]
    OptionsInline = admin.StackedInline[TaskOptions, PeriodicTask]
else:
    TaskModelAdmin, OptionsInline = admin.ModelAdmin, admin.StackedInline

STATES = TaskState._meta.db_table


class TaskOptionsInline(OptionsInline):
    """The policies and the pause of the task. Left untouched it makes no row: the defaults hold."""

    model = TaskOptions
    form = TaskOptionsForm
    verbose_name_plural = _("missed runs, spreading, pause")
    extra = 1
    fields = (
        ("missed", "grace_seconds", "jitter_seconds"),
        ("paused", "paused_until", "paused_by"),
        "paused_why",
    )


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(WithReadings, TaskModelAdmin):
    """A page of the list takes the same number of queries however many tasks are on it."""

    form = PeriodicTaskForm
    inlines = [TaskOptionsInline]
    list_display = ["name", "task", "schedule_in_words", "enabled", "next_run", "last_run_at"]
    list_filter = ["enabled", "one_off", "last_run_at"]
    search_fields = ["name", "task", "description"]
    # Of clocked rows there may be a hundred thousand: too many for a select.
    autocomplete_fields = SCHEDULES
    readonly_fields = ["next_run", "last_run_at", "total_run_count", "date_changed"]
    show_full_result_count = False
    fieldsets = [
        (None, {"fields": ["name", "task", "enabled", "description"]}),
        (_("Schedule"), {"fields": [*SCHEDULES, "one_off", "start_time", "expires"]}),
        (_("Arguments"), {"fields": ["args", "kwargs"]}),
        (
            _("Message"),
            {
                "fields": ["queue", "exchange", "routing_key", "priority", "expire_seconds", "headers"],
                "classes": ["collapse"],
            },
        ),
        (_("Runs"), {"fields": ["next_run", "last_run_at", "total_run_count", "date_changed"]}),
    ]

    def get_queryset(self, request: Any) -> Any:
        """With all that the list and a task's text show."""
        rows = super().get_queryset(request).select_related(*SCHEDULES)
        return rows.select_related("onebeat_state") if migrated.there(rows.db, STATES) else rows

    def get_inlines(self, request: Any, obj: Any) -> Any:
        """The options, once `migrate` has made their table."""
        inlines = super().get_inlines(request, obj)
        if migrated.there(self.get_queryset(request).db, TaskOptions._meta.db_table):
            return inlines
        return [one for one in inlines if one.model is not TaskOptions]

    @admin.display(description=_("schedule"))
    def schedule_in_words(self, task: PeriodicTask) -> str:
        """The schedule in words."""
        return task_words(task) or gettext("none")

    @admin.display(description=_("next run"), ordering="onebeat_state__due_at")
    def next_run(self, task: PeriodicTask) -> str | None:
        """The next nominal time, or why there is none to be expected."""
        there = migrated.there(task._state.db or DEFAULT_DB_ALIAS, STATES)
        state = getattr(task, "onebeat_state", None) if there else None
        if state is not None and state.quarantine:
            return gettext("set aside: %(reason)s") % {"reason": state.quarantine}
        return None if state is None else shown(state.due_at)
