"""Filters of the lists of tasks and occurrences. None of them counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from onebeat.models.instants import from_utc
from onebeat.queries import last_runs, ledger_lists, task_lists

if TYPE_CHECKING:
    from onebeat.admin.words import Text

    Rows = QuerySet[Any]
    Narrow = Callable[[Rows, str], Rows]

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
    narrow: ClassVar[Callable[..., Rows]]

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, Text]]:
        """The choices, each with its text."""
        return list(self.choices_here.items())

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """The rows that fit what was chosen, or all."""
        key = self.value()
        return type(self).narrow(queryset, key) if key and key in dict(self.lookup_choices) else queryset


def choice(title: Text, name: str, choices: Mapping[str, Text], narrow: Narrow) -> type[Choice]:
    """A filter with a title, its name in the address, and the choices with their texts.

    `narrow` takes the rows of the list and the key of a choice; it returns the rows that fit.
    """
    members = {"title": title, "parameter_name": name, "choices_here": choices, "narrow": staticmethod(narrow)}
    return type(f"{name.title()}Filter", (Choice,), members)


def _next(rows: Rows, key: str) -> Rows:
    return task_lists.leaving_before(rows, None if key == "none" else database_clock.now(rows.db) + _LENGTHS[key])


def _last(rows: Rows, key: str) -> Rows:
    if key == "never":
        return last_runs.never(rows)
    since = from_utc(database_clock.now(rows.db) - _LENGTHS.get(key, 7 * _DAY))
    return rows.filter(last_run_at__lt=since) if key == "before" else rows.filter(last_run_at__gte=since)


StatusFilter = choice(
    _("status"),
    "status",
    status.CHOICES,
    lambda rows, key: task_lists.by_status(rows, key, database_clock.now(rows.db)),
)
OriginFilter = choice(_("origin"), "origin", {**ORIGINS, "admin": BY_HAND}, task_lists.by_origin)
KindFilter = choice(_("schedule"), "kind", KINDS, lambda rows, key: rows.filter(**{f"{key}__isnull": False}))
NextFilter = choice(
    _("next run"),
    "next",
    {"overdue": _("overdue"), "1h": _("in the next hour"), "24h": _("in the next 24 hours"), "none": _("none")},
    _next,
)
LastFilter = choice(_("last run"), "ran", {**_AGO, "before": _("before that"), "never": _("never")}, _last)
OutcomeFilter = choice(_("last outcome"), "outcome", STATES, last_runs.having)
LateFilter = choice(
    _("lateness"),
    "late",
    {"1": _("a second or more"), "60": _("a minute or more"), "3600": _("an hour or more")},
    lambda rows, key: last_runs.late(rows, int(key)),
)
StateFilter = choice(_("outcome"), "state", STATES, ledger_lists.in_state)
ReasonFilter = choice(_("reason"), "reason", REASONS, lambda rows, key: ledger_lists.in_state(rows, "skipped", key))
SinceFilter = choice(
    _("nominal time"),
    "since",
    _AGO,
    lambda rows, key: ledger_lists.since(rows, database_clock.now(rows.db) - _LENGTHS[key]),
)


class TaskFilter(Choice):
    """What is sent: the tasks that the Celery app of this process knows, and the one that was asked for."""

    title = _("Celery task")
    parameter_name = "task"
    narrow = staticmethod(lambda rows, key: rows.filter(task=key))

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, Text]]:
        """The first of the names, and the chosen one."""
        names = sorted(celery_app.tasks())[:_NAMES]
        asked = self.value()
        return [(name, name) for name in ([asked] if asked and asked not in names else []) + names]
