"""Filters of the list of tasks. None of them counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from onebeat.admin import status
from onebeat.admin.outcomes import STATES
from onebeat.db import database_clock
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import TaskOptions, TaskState
from onebeat.models.instants import from_utc
from onebeat.models.task_rules import SCHEDULES
from onebeat.queries import last_runs

KINDS = {
    "interval": _("interval"),
    "crontab": _("crontab"),
    "solar": _("solar event"),
    "clocked": _("clocked time"),
}


ORIGINS = {"code": _("code"), "once": _("once")}
#: No origin: made in the admin, or by the program itself.
_BY_HAND, BY_HAND = "admin", _("by hand")
#: How many names of tasks are offered.
_NAMES = 40
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


class Choice(admin.SimpleListFilter):
    """One of a few; anything else in the address is no choice."""

    choices_here: Any = ()

    def lookups(self, request: Any, model_admin: Any) -> Any:
        """As Django's."""
        return list(self.choices_here)

    def queryset(self, request: Any, queryset: Any) -> Any:
        """As Django's."""
        chosen = self.value()
        return self.chosen(queryset, chosen) if chosen in dict(self.lookup_choices) else queryset

    def chosen(self, rows: Any, key: Any) -> Any:
        """The rows that fit the choice."""
        raise NotImplementedError


class StatusFilter(Choice):
    """On, paused, finished, off, quarantined."""

    title = _("status")
    parameter_name = "status"
    choices_here = status.CHOICES

    def chosen(self, rows: Any, key: Any) -> Any:
        return status.having(rows, str(key), database_clock.now(rows.db))


class OriginFilter(Choice):
    """Who made the task."""

    title = _("origin")
    parameter_name = "origin"
    choices_here = [*ORIGINS.items(), (_BY_HAND, BY_HAND)]

    def chosen(self, rows: Any, key: Any) -> Any:
        if key == _BY_HAND:
            return rows.filter(~Exists(TaskOptions.objects.filter(pk=OuterRef("pk"), origin__in=list(ORIGINS))))
        return rows.filter(pk__in=TaskOptions.objects.filter(origin=key).values("task_id"))


class KindFilter(Choice):
    """The kind of schedule."""

    title = _("schedule")
    parameter_name = "kind"
    choices_here = KINDS.items()

    def chosen(self, rows: Any, key: Any) -> Any:
        return rows.filter(**{f"{key}__isnull": False}) if key in SCHEDULES else rows


class NextFilter(Choice):
    """When it runs next."""

    title = _("next run")
    parameter_name = "next"
    choices_here = [
        ("overdue", _("overdue")),
        ("1h", _("in the next hour")),
        ("24h", _("in the next 24 hours")),
        ("none", _("none")),
    ]

    def chosen(self, rows: Any, key: Any) -> Any:
        waiting = TaskState.objects.filter(wake_at__isnull=False)
        if key == "none":
            return rows.filter(~Exists(waiting.filter(pk=OuterRef("pk"))))
        ahead = {"overdue": timedelta(0), "1h": _HOUR, "24h": _DAY}[str(key)]
        return rows.filter(pk__in=waiting.filter(wake_at__lt=database_clock.now(rows.db) + ahead).values("task_id"))


class LastFilter(Choice):
    """When it ran last."""

    title = _("last run")
    parameter_name = "ran"
    choices_here = [
        ("1h", _("last hour")),
        ("24h", _("last 24 hours")),
        ("7d", _("last 7 days")),
        ("before", _("before that")),
        ("never", _("never")),
    ]

    def chosen(self, rows: Any, key: Any) -> Any:
        if key == "never":
            return last_runs.never(rows)
        past = {"1h": _HOUR, "24h": _DAY}.get(str(key), 7 * _DAY)
        since = from_utc(database_clock.now(rows.db) - past)
        return rows.filter(last_run_at__lt=since) if key == "before" else rows.filter(last_run_at__gte=since)


class OutcomeFilter(Choice):
    """What became of the last run."""

    title = _("last outcome")
    parameter_name = "outcome"
    choices_here = STATES.items()

    def chosen(self, rows: Any, key: Any) -> Any:
        return last_runs.having(rows, str(key))


class LateFilter(Choice):
    """How late the last run left."""

    title = _("lateness")
    parameter_name = "late"
    choices_here = [
        ("1", _("a second or more")),
        ("60", _("a minute or more")),
        ("3600", _("an hour or more")),
    ]

    def chosen(self, rows: Any, key: Any) -> Any:
        return last_runs.late(rows, int(key))


class TaskFilter(Choice):
    """What is sent: the tasks that the Celery app of this process knows, and the one that was asked for."""

    title = _("Celery task")
    parameter_name = "task"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        names = sorted(celery_app.tasks())[:_NAMES]
        asked = self.value()
        return [(name, name) for name in ([asked] if asked and asked not in names else []) + names]

    def chosen(self, rows: Any, key: Any) -> Any:
        return rows.filter(task=key)
