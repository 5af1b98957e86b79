"""The page of a task as django-celery-beat has it, with its actions, for those who build on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from celery import current_app
from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from onebeat import api
from onebeat.admin import PeriodicTaskForm as OurForm
from onebeat.admin import TaskOptionsInline, actions
from onebeat.admin.acting import ACTS, Act, Done, Given
from onebeat.admin.pages import KeepsSecrets, SavesChanges
from onebeat.compat.widgets import TaskChoiceField
from onebeat.models import PeriodicTask, PeriodicTasks
from onebeat.models.task_rules import SCHEDULES, check_json

__all__ = ["PeriodicTaskAdmin", "PeriodicTaskForm"]

if TYPE_CHECKING:
    Rows = QuerySet[PeriodicTask]
    Said = Callable[[int], str]


def _enable(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    api.enable(task, why=given["why"], by=by, using=using)
    return Done(task, gettext("Enabled"))


def _disable(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    api.disable(task, why=given["why"], by=by, using=using)
    return Done(task, gettext("Disabled"))


def _toggle(task: PeriodicTask, given: Given, by: object, using: str) -> Done:
    return (_disable if task.enabled else _enable)(task, given, by, using)


class PeriodicTaskForm(OurForm):
    """A task, whose name is chosen among the registered ones (`regtask`) or typed (`task`)."""

    regtask = TaskChoiceField(label=_("Task (registered)"), required=False)
    task = forms.CharField(label=_("Task (custom)"), required=False, max_length=200)

    class Meta:
        model = PeriodicTask
        exclude = ()

    def clean(self) -> dict[str, object]:
        """What is chosen counts before what is typed."""
        data: dict[str, object] = super().clean() or self.cleaned_data
        if data.get("regtask"):
            data["task"] = data["regtask"]
        if not data.get("task"):
            self.add_error("task", gettext("Need name of task"))
        return data

    def clean_args(self) -> str:
        """Refuse what is no JSON list."""
        return self._json("args")

    def clean_kwargs(self) -> str:
        """Refuse what is no JSON object."""
        return self._json("kwargs")

    def _json(self, name: str) -> str:
        check_json(name, self.cleaned_data[name])
        return str(self.cleaned_data[name])


class PeriodicTaskAdmin(KeepsSecrets, actions.OwnTransactions, SavesChanges):
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

    def get_queryset(self, request: HttpRequest) -> Rows:
        """With all that the list shows."""
        rows: Rows = super().get_queryset(request)
        return rows.select_related(*SCHEDULES)

    def crontab_translation(self, obj: PeriodicTask) -> str:
        """The task's crontab in words."""
        return "" if obj.crontab is None else obj.crontab.human_readable

    @admin.action(description=_("Enable selected tasks"), permissions=["change"])
    def enable_tasks(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Enable them; the first run is the first match from now on."""
        act = Act("enable_tasks", _("Enable selected tasks"), "", _enable)
        return self._act(
            request, queryset, act,
            lambda n: ngettext("{0} task was successfully enabled", "{0} tasks were successfully enabled", n),
        )  # fmt: skip

    @admin.action(description=_("Disable selected tasks"), permissions=["change"])
    def disable_tasks(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Disable them."""
        act = Act("disable_tasks", _("Disable selected tasks"), "", _disable)
        return self._act(
            request, queryset, act,
            lambda n: ngettext("{0} task was successfully disabled", "{0} tasks were successfully disabled", n),
        )  # fmt: skip

    @admin.action(description=_("Toggle activity of selected tasks"), permissions=["change"])
    def toggle_tasks(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Enable the disabled ones and the other way round."""
        act = Act("toggle_tasks", _("Toggle activity of selected tasks"), "", _toggle)
        return self._act(
            request, queryset, act,
            lambda n: ngettext("{0} task was successfully toggled", "{0} tasks were successfully toggled", n),
        )  # fmt: skip

    @admin.action(description=_("Run selected tasks"), permissions=["change"])
    def run_tasks(self, request: HttpRequest, queryset: Rows) -> HttpResponse | None:
        """Ask for a run of each now, beside its schedule. None is run if the Celery task of one is not registered."""
        self.celery_app.loader.import_default_modules()
        for name in queryset.order_by("task").values_list("task", flat=True).distinct():
            if name not in self.celery_app.tasks:
                self.message_user(request, gettext('task "{0}" not found').format(name), level=messages.ERROR)
                return None
        act = Act("run_tasks", _("Run selected tasks"), "", ACTS["run_now"].do)
        return self._act(
            request, queryset, act,
            lambda n: ngettext("{0} task was successfully run", "{0} tasks were successfully run", n),
        )  # fmt: skip

    def _act(self, request: HttpRequest, queryset: Rows, act: Act, said: Said) -> HttpResponse | None:
        progress = actions.perform(self, request, queryset, act, {"why": ""})
        for name, why in progress.unfit:
            text = gettext("%(name)s was left as it is: %(why)s.") % {"name": name, "why": why}
            self.message_user(request, text, level=messages.WARNING)
        if progress.more:
            return actions.go_on(self, request, act, progress)
        PeriodicTasks.update_changed()
        count = progress.count + len(progress.tasks)
        self.message_user(request, said(count).format(count))
        return None

    def _toggle_tasks_activity(self, queryset: Rows) -> int:
        tasks = list(queryset)
        for task in tasks:
            _toggle(task, {"why": ""}, None, queryset.db)
        return len(tasks)
