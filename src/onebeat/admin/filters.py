"""Filters of the lists of tasks and occurrences. None of them counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from onebeat.admin import status
from onebeat.admin.outcomes import REASONS, STATES
from onebeat.db import database_clock
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import PeriodicTask
from onebeat.models.instants import from_utc
from onebeat.queries import last_runs, ledger_lists, task_lists

if TYPE_CHECKING:
    from onebeat.admin.words import Text

    Rows = QuerySet[Any]

KINDS = {
    "interval": _("interval"),
    "crontab": _("crontab"),
    "solar": _("solar event"),
    "clocked": _("clocked time"),
}
ORIGINS = {"code": _("code"), "once": _("once")}
#: No origin: made in the admin, or by the program itself.
BY_HAND = _("by hand")
#: How many names of tasks are offered.
_NAMES = 40
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_AGO = {"1h": _("last hour"), "24h": _("last 24 hours"), "7d": _("last 7 days")}
_LENGTHS = {"overdue": timedelta(0), "1h": _HOUR, "24h": _DAY, "7d": 7 * _DAY}


class Choice(admin.SimpleListFilter):
    """One of a few; anything else in the address is no choice."""

    choices_here: ClassVar[Mapping[str, Text]] = {}

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, Text]]:
        """The choices, each with its text."""
        return list(self.choices_here.items())

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """The rows that fit what was chosen, or all."""
        key = self.value()
        return self.chosen(queryset, key) if key and key in dict(self.lookup_choices) else queryset

    def chosen(self, rows: Rows, key: str) -> Rows:
        """The rows that fit a choice."""
        raise NotImplementedError


class StatusFilter(Choice):
    """On, paused, finished, off, quarantined."""

    title = _("status")
    parameter_name = "status"
    choices_here = status.CHOICES

    def chosen(self, rows: Rows, key: str) -> Rows:
        return task_lists.by_status(rows, key, database_clock.now(rows.db))


class OriginFilter(Choice):
    """Who made the task."""

    title = _("origin")
    parameter_name = "origin"
    choices_here = {**ORIGINS, "admin": BY_HAND}

    def chosen(self, rows: Rows, key: str) -> Rows:
        return task_lists.by_origin(rows, key)


class KindFilter(Choice):
    """The kind of schedule."""

    title = _("schedule")
    parameter_name = "kind"
    choices_here = KINDS

    def chosen(self, rows: Rows, key: str) -> Rows:
        return rows.filter(**{f"{key}__isnull": False})


class NextFilter(Choice):
    """When it runs next."""

    title = _("next run")
    parameter_name = "next"
    choices_here = {
        "overdue": _("overdue"),
        "1h": _("in the next hour"),
        "24h": _("in the next 24 hours"),
        "none": _("none"),
    }

    def chosen(self, rows: Rows, key: str) -> Rows:
        instant = None if key == "none" else database_clock.now(rows.db) + _LENGTHS[key]
        return task_lists.leaving_before(rows, instant)


class LastFilter(Choice):
    """When it ran last."""

    title = _("last run")
    parameter_name = "ran"
    choices_here = {**_AGO, "before": _("before that"), "never": _("never")}

    def chosen(self, rows: Rows, key: str) -> Rows:
        if key == "never":
            return last_runs.never(rows)
        since = from_utc(database_clock.now(rows.db) - _LENGTHS.get(key, 7 * _DAY))
        return rows.filter(last_run_at__lt=since) if key == "before" else rows.filter(last_run_at__gte=since)


class OutcomeFilter(Choice):
    """What became of the last run."""

    title = _("last outcome")
    parameter_name = "outcome"
    choices_here = STATES

    def chosen(self, rows: Rows, key: str) -> Rows:
        return last_runs.having(rows, key)


class LateFilter(Choice):
    """How late the last run left."""

    title = _("lateness")
    parameter_name = "late"
    choices_here = {"1": _("a second or more"), "60": _("a minute or more"), "3600": _("an hour or more")}

    def chosen(self, rows: Rows, key: str) -> Rows:
        return last_runs.late(rows, int(key))


class TaskFilter(Choice):
    """What is sent: the tasks that the Celery app of this process knows, and the one that was asked for."""

    title = _("Celery task")
    parameter_name = "task"

    def chosen(self, rows: Rows, key: str) -> Rows:
        return rows.filter(task=key)

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[PeriodicTask]) -> list[tuple[str, Text]]:
        """The first of the names, and the chosen one."""
        names = sorted(celery_app.tasks())[:_NAMES]
        asked = self.value()
        return [(name, name) for name in ([asked] if asked and asked not in names else []) + names]


class StateFilter(Choice):
    """What became of an occurrence."""

    title = _("outcome")
    parameter_name = "state"
    choices_here = STATES

    def chosen(self, rows: Rows, key: str) -> Rows:
        return ledger_lists.in_state(rows, key)


class ReasonFilter(Choice):
    """Why an occurrence was skipped."""

    title = _("reason")
    parameter_name = "reason"
    choices_here = REASONS

    def chosen(self, rows: Rows, key: str) -> Rows:
        return ledger_lists.in_state(rows, "skipped", key)


class SinceFilter(Choice):
    """How long ago an occurrence's nominal time is."""

    title = _("nominal time")
    parameter_name = "since"
    choices_here = _AGO

    def chosen(self, rows: Rows, key: str) -> Rows:
        return ledger_lists.since(rows, database_clock.now(rows.db) - _LENGTHS[key])
