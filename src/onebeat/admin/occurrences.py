"""The ledger to look at: each nominal time and what became of it, of one task or of all."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from onebeat.admin.filters import Choice
from onebeat.admin.listing import BoundedList
from onebeat.admin.outcomes import REASONS, STATES, late_words, state_word
from onebeat.admin.readonly import ReadOnlyAdmin
from onebeat.admin.words import instant, labelled, shown, span, two
from onebeat.db import database_clock, expressions
from onebeat.models import Occurrence, PeriodicTask
from onebeat.queries import verdicts

#: A search finds the occurrences of this many tasks at most.
_TASKS = 1000
_BY_TASK = "task__id__exact"
#: How an index finds those in a state: the claimed have a lease, the others a word of why.
_INDEXED = {"claimed": Q(lease_until__isnull=False), "failed": Q(error__gt=""), "skipped": Q(reason__gt="")}


class StateFilter(Choice):
    """What became of it."""

    title = _("outcome")
    parameter_name = "state"
    choices_here = STATES.items()

    def chosen(self, rows: Any, key: Any) -> Any:
        return rows.filter(_INDEXED.get(key, Q()), state=key)


class ReasonFilter(Choice):
    """Why it was skipped."""

    title = _("reason")
    parameter_name = "reason"
    choices_here = REASONS.items()

    def chosen(self, rows: Any, key: Any) -> Any:
        return rows.filter(_INDEXED["skipped"], state="skipped", reason=key)


class SinceFilter(Choice):
    """How long ago its nominal time is."""

    title = _("nominal time")
    parameter_name = "since"
    choices_here = [("1h", _("last hour")), ("24h", _("last 24 hours")), ("7d", _("last 7 days"))]
    hours = {"1h": 1, "24h": 24, "7d": 7 * 24}

    def chosen(self, rows: Any, key: Any) -> Any:
        return rows.filter(due_at__gte=database_clock.now(rows.db) - timedelta(hours=self.hours[str(key)]))


class OccurrenceList(BoundedList):
    """What no index finds is looked for among the newest occurrences, and the page says so: the ledger may have many
    millions, and nobody waits for a look at all of them.
    """

    NEWEST = 1_000_000
    #: Whether older ones were left out.
    newest_of: int | None = None

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """As Django's, bounded."""
        rows = super().get_queryset(request, exclude_parameters)
        if self._found_by_index(rows):
            return rows
        ledger = Occurrence.objects.using(rows.db)
        newest = ledger.order_by("-pk").values_list("pk", flat=True).first() or 0
        if not ledger.filter(pk__lte=newest - self.NEWEST).exists():
            return rows
        self.newest_of = self.NEWEST
        return rows.filter(pk__gt=newest - self.NEWEST)

    def _found_by_index(self, rows: Any) -> bool:
        """Of one task; or in the order of the keys, all of them or those that an index holds apart."""
        chosen = set(self.filter_params)
        if _BY_TASK in chosen:
            return True
        if ORDER_VAR in self.params or self.query or SinceFilter.parameter_name in chosen:
            return False
        state = self.filter_params.get(StateFilter.parameter_name, [""])[-1]
        apart = connections[rows.db].features.supports_partial_indexes
        if ReasonFilter.parameter_name in chosen or state in ("failed", "skipped"):
            return bool(apart)
        return state in ("", "claimed")


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
    empty_value_display = ""
    search_fields = ["task_name"]
    ordering = ["-pk"]
    fields = [
        "task_link",
        ("due", "to", "run"),
        "became",
        "explained",
        "why",
        ("sent", "late"),
        ("began", "ended", "took"),
        ("worker", "attempt", "duplicate_deliveries"),
        "message_id",
        ("decided", "claims", "beat_id", "leased"),
    ]

    def get_changelist(self, request: Any, **kwargs: Any) -> Any:
        """Our list."""
        return OccurrenceList

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """By the name, looked up among the tasks that exist: the ledger may have a hundred rows for each of them."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if (key := _uuid(text)) is not None:
            return queryset.filter(celery_task_id=key), False
        holds = expressions.holds(queryset.db, PeriodicTask._meta.db_table, ["name"], text)
        found = RawSQL(*holds, output_field=BooleanField())
        named = PeriodicTask.objects.using(queryset.db).filter(found).order_by().values_list("pk", flat=True)
        tasks = list(named[:_TASKS])
        return queryset.filter(Q(task_id__in=tasks) if tasks else Q(task_name=text)), False

    @admin.display(description=_("nominal time"), ordering="due_at")
    def nominal(self, one: Occurrence) -> str:
        """The nominal time, or the range of those that were skipped together."""
        first = shown(one.due_at) or ""
        return first if one.last_due_at is None else f"{first} - {shown(one.last_due_at)}"

    @admin.display(description=_("outcome"))
    def became(self, one: Occurrence) -> SafeString:
        """What became of it."""
        return format_html('<span class="ob-badge ob-{}">{}</span>', one.state, state_word(one))

    @admin.display(description=_("sent"), ordering="sent_at")
    def sent_and_late(self, one: Occurrence) -> Any:
        """When it was sent, and below how late that was."""
        return labelled(_("sent"), two(shown(one.sent_at) or "", late_words(one))) if one.sent_at else None

    @admin.display(description=_("late"))
    def late(self, one: Occurrence) -> str:
        """How late it was sent."""
        return late_words(one)

    @admin.display(description=_("duration"))
    def took(self, one: Occurrence) -> Any:
        """How long the worker took, where it says so."""
        return None if one.duration is None else labelled(_("duration"), format_html("{}", span(one.duration)))

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
        return verdicts.of_row(using, one, one.due_at, database_clock.now(using)).sentence

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
