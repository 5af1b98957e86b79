"""The ledger to look at: each nominal time and what became of it, of one task or of all."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import ORDER_VAR
from django.db import router
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from onebeat.admin.filters import ReasonFilter, SinceFilter, StateFilter
from onebeat.admin.listing import BoundedList
from onebeat.admin.outcomes import late_words, state_word
from onebeat.admin.pages import ReadOnlyAdmin, page_of
from onebeat.admin.words import instant, labelled, shown, span, two
from onebeat.db import database_clock
from onebeat.models import Occurrence, PeriodicTask
from onebeat.queries import explain, ledger_lists
from onebeat.store import batches

_BY_TASK = "task__id__exact"


class OccurrenceList(BoundedList):
    """What no index finds is looked for among the newest occurrences, and the page says so: the ledger may have many
    millions, and nobody waits for a look at all of them.
    """

    NEWEST = 1_000_000
    #: Among how many of the newest the page looked; None: among all.
    newest_of: int | None = None

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str | None] | None = None
    ) -> QuerySet[Occurrence]:
        """The occurrences to list, bounded."""
        rows: QuerySet[Occurrence] = super().get_queryset(request, exclude_parameters)
        newest = None if self._found_by_index(rows.db) else ledger_lists.newest(rows, self.NEWEST)
        if newest is None:
            return rows
        self.newest_of = self.NEWEST
        return newest

    def _found_by_index(self, using: str) -> bool:
        """Of one task; or in the order of the keys, all of them or those that an index holds apart."""
        chosen = set(self.filter_params)
        if _BY_TASK in chosen:
            return True
        if ORDER_VAR in self.params or self.query or "since" in chosen:
            return False
        state = self.filter_params.get("state", [""])[-1]
        return ledger_lists.indexed(using, "skipped" if "reason" in chosen else state)


@admin.register(Occurrence)
class OccurrenceAdmin(ReadOnlyAdmin):
    """The task may be gone; its name is kept in the row."""

    due = instant("due_at", _("nominal time"))
    to = instant("last_due_at", _("up to"))
    decided = instant("decided_at", _("decided"))
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

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[OccurrenceList]:
        """The bounded list."""
        return OccurrenceList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Occurrence], search_term: str
    ) -> tuple[QuerySet[Occurrence], bool]:
        """By a part of the task's name, or by the id of a message."""
        text = search_term.strip()
        return ledger_lists.found(queryset, text) if text else queryset, False

    @admin.display(description=_("nominal time"), ordering="due_at")
    def nominal(self, row: Occurrence) -> str:
        """The nominal time, or the range of those that were skipped together."""
        first = shown(row.due_at) or ""
        return first if row.last_due_at is None else f"{first} - {shown(row.last_due_at)}"

    @admin.display(description=_("outcome"))
    def became(self, row: Occurrence) -> SafeString:
        """What became of it."""
        return format_html('<span class="ob-badge ob-{}">{}</span>', row.state, state_word(row))

    @admin.display(description=_("sent"), ordering="sent_at")
    def sent_and_late(self, row: Occurrence) -> SafeString | None:
        """When it was sent, and below how late that was."""
        return labelled(_("sent"), two(shown(row.sent_at) or "", late_words(row))) if row.sent_at else None

    @admin.display(description=_("late"))
    def late(self, row: Occurrence) -> str:
        """How late it was sent."""
        return late_words(row)

    @admin.display(description=_("duration"))
    def took(self, row: Occurrence) -> SafeString | None:
        """How long the worker took, where it says so."""
        return None if row.duration is None else labelled(_("duration"), format_html("{}", span(row.duration)))

    @admin.display(description=_("detail"))
    def why(self, row: Occurrence) -> str:
        """What else is known: why it was not sent, or what it raised."""
        return row.error or row.detail

    @admin.display(description=_("task"))
    def task_link(self, row: Occurrence) -> str:
        """The task, linked while it exists and this site has a page for it."""
        url = page_of(self.admin_site, PeriodicTask, "change", row.task_id)
        if url is None or not PeriodicTask.objects.filter(pk=row.task_id).exists():
            return row.task_name
        return format_html('<a href="{}">{}</a>', url, row.task_name)

    @admin.display(description=_("in words"))
    def explained(self, row: Occurrence) -> str:
        """What became of it, as `onebeat explain` says it."""
        using = row._state.db or router.db_for_read(type(row))
        return explain.of_row(using, row, row.due_at, database_clock.now(using)).sentence

    @admin.display(description=_("claimed until"))
    def leased(self, row: Occurrence) -> str | None:
        """Until when a scheduler holds it; empty once it is settled."""
        using = row._state.db or router.db_for_read(type(row))
        return shown(batches.lease_end(using, row.claim_token)) if row.state == Occurrence.State.CLAIMED else None

    @admin.display(description=_("message"))
    def message(self, row: Occurrence) -> SafeString:
        """The beginning of the id of its message, enough to recognise it, and all of it on hover."""
        return format_html('<code title="{}">{}…</code>', row.celery_task_id, str(row.celery_task_id)[:8])

    @admin.display(description=_("message id"))
    def message_id(self, row: Occurrence) -> SafeString:
        """The id of its message, linked to the result where django-celery-results keeps it."""
        code, results = format_html("<code>{}</code>", row.celery_task_id), "django_celery_results"
        url = None
        if apps.is_installed(results):
            url = page_of(self.admin_site, apps.get_model(results, "TaskResult"), "changelist")
        return code if url is None else format_html('<a href="{}?q={}">{}</a>', url, row.celery_task_id, code)
