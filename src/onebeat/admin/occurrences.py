"""The ledger to look at: each nominal time and what became of it, of one task or of all."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Q
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from onebeat.admin.outcomes import REASONS, STATES, late_words, state_word
from onebeat.admin.readonly import ReadOnlyAdmin
from onebeat.admin.words import instant, shown, span, two
from onebeat.models import Occurrence, PeriodicTask
from onebeat.store import vendors, verdicts

#: A search finds the occurrences of this many tasks at most.
_TASKS = 1000
_BY_TASK = "task__id__exact"


class StateFilter(admin.SimpleListFilter):
    """What became of it."""

    title = _("outcome")
    parameter_name = "state"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return list(STATES.items())

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(state=self.value()) if self.value() in STATES else queryset


class ReasonFilter(admin.SimpleListFilter):
    """Why it was skipped."""

    title = _("reason")
    parameter_name = "reason"

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return list(REASONS.items())

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(state="skipped", reason=self.value()) if self.value() in REASONS else queryset


class SinceFilter(admin.SimpleListFilter):
    """How long ago its nominal time is."""

    title = _("nominal time")
    parameter_name = "since"
    hours = {"1h": 1, "24h": 24, "7d": 7 * 24}

    def lookups(self, request: Any, model_admin: Any) -> Any:
        return [("1h", _("last hour")), ("24h", _("last 24 hours")), ("7d", _("last 7 days"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        hours = self.hours.get(self.value() or "")
        return queryset.filter(due_at__gte=vendors.now(queryset.db) - timedelta(hours=hours)) if hours else queryset


@admin.register(Occurrence)
class OccurrenceAdmin(ReadOnlyAdmin):
    """The task may be gone; its name is kept in the row."""

    due = instant("due_at", _("nominal time"))
    to = instant("through", _("up to"))
    decided = instant("decided_at", _("decided"))
    leased = instant("lease_until", _("claimed until"))
    sent = instant("sent_at", _("sent"))
    began = instant("started_at", _("started"))
    ended = instant("finished_at", _("finished at"))
    list_display = ["nominal", "task_name", "became", "sent_and_late", "took", "why", "message"]
    list_filter = [StateFilter, ReasonFilter, SinceFilter]
    list_per_page = 50
    search_fields = ["task_name"]
    fields = [
        "task_link",
        ("due", "to", "run"),
        "became",
        "explained",
        "why",
        ("sent", "late"),
        ("began", "ended", "took"),
        ("worker", "attempt", "copies"),
        "message_id",
        ("decided", "claims", "beat_id", "leased"),
    ]

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """By the name, looked up among the tasks that exist: the ledger may have a hundred rows for each of them."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if (key := _uuid(text)) is not None:
            return queryset.filter(celery_task_id=key), False
        named = PeriodicTask.objects.filter(name__icontains=text).values_list("pk", flat=True)
        tasks = list(named[:_TASKS])
        return queryset.filter(Q(task_id__in=tasks) if tasks else Q(task_name=text)), False

    @admin.display(description=_("nominal time"), ordering="due_at")
    def nominal(self, one: Occurrence) -> str:
        """The nominal time, or the range of those that were skipped together."""
        first = shown(one.due_at) or ""
        return first if one.through is None else f"{first} - {shown(one.through)}"

    @admin.display(description=_("outcome"))
    def became(self, one: Occurrence) -> SafeString:
        """What became of it."""
        return format_html('<span class="ob-badge ob-{}">{}</span>', one.state, state_word(one))

    @admin.display(description=_("sent"), ordering="sent_at")
    def sent_and_late(self, one: Occurrence) -> Any:
        """When it was sent, and below how late that was."""
        return two(shown(one.sent_at) or "", late_words(one)) if one.sent_at else None

    @admin.display(description=_("late"))
    def late(self, one: Occurrence) -> str:
        """How late it was sent."""
        return late_words(one)

    @admin.display(description=_("duration"))
    def took(self, one: Occurrence) -> str:
        """How long the worker took, where it says so."""
        return "" if one.duration is None else span(one.duration)

    @admin.display(description=_("detail"))
    def why(self, one: Occurrence) -> str:
        """What else is known: why it was not sent, or what it raised."""
        return one.error or one.detail

    @admin.display(description=_("task"))
    def task_link(self, one: Occurrence) -> Any:
        """The task, linked while it exists."""
        if not PeriodicTask.objects.filter(pk=one.task_id).exists():
            return one.task_name
        url = reverse(
            "admin:django_celery_beat_periodictask_change", args=[one.task_id], current_app=self.admin_site.name
        )
        return format_html('<a href="{}">{}</a>', url, one.task_name)

    @admin.display(description=_("in words"))
    def explained(self, one: Occurrence) -> str:
        """What became of it, as `onebeat explain` says it."""
        using = one._state.db or DEFAULT_DB_ALIAS
        return verdicts.of_row(using, one, one.due_at, vendors.now(using)).sentence

    @admin.display(description=_("message"))
    def message(self, one: Occurrence) -> SafeString:
        """The beginning of the id of its message: enough to tell it, and all of it on hover."""
        return format_html('<code title="{}">{}…</code>', one.celery_task_id, str(one.celery_task_id)[:8])

    @admin.display(description=_("message id"))
    def message_id(self, one: Occurrence) -> Any:
        """The id of its message, linked to the result where django-celery-results keeps it."""
        if apps.is_installed("django_celery_results"):
            try:
                url = reverse("admin:django_celery_results_taskresult_changelist", current_app=self.admin_site.name)
            except NoReverseMatch:
                return one.celery_task_id
            return format_html('<a href="{}?q={}"><code>{}</code></a>', url, one.celery_task_id, one.celery_task_id)
        return format_html("<code>{}</code>", one.celery_task_id)


def _uuid(text: str) -> Any:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
