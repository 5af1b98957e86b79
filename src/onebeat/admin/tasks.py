"""Tasks: what to send, when, and what became of it last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseForbidden,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import filters, kinds, overview, preview, secrets
from onebeat.admin.actions import TaskActions
from onebeat.admin.columns import TaskColumns
from onebeat.admin.forms import PeriodicTaskForm, TaskOptionsForm
from onebeat.admin.listing import TaskList
from onebeat.admin.pages import KeepsSecrets, Tool, alarm, page_of, url_of
from onebeat.admin.words import WithReadings
from onebeat.db import schema
from onebeat.models import Occurrence, PeriodicTask, TaskOptions
from onebeat.models.task_rules import SCHEDULES
from onebeat.queries import task_lists

if TYPE_CHECKING:
    from django.contrib.admin.options import InlineModelAdmin
    from django.contrib.admin.options import _FieldsetSpec as Fieldsets

    OptionsInline = admin.StackedInline[TaskOptions, PeriodicTask]
    Inline = type[InlineModelAdmin[Any, Any]]
    Inlines = list[Inline] | tuple[Inline, ...] | tuple[()]
    Row = str | list[str] | tuple[str, ...] | tuple[()]
else:
    OptionsInline = admin.StackedInline

#: What a search looks through: columns of the task.
SEARCHED = [*task_lists.NAMES, *task_lists.ARGUMENTS]


class TaskOptionsInline(OptionsInline):
    """The policies and the pause of the task. Left untouched it makes no row: the defaults hold."""

    model = TaskOptions
    form = TaskOptionsForm
    verbose_name = _("missed runs, spreading, pause")
    verbose_name_plural = verbose_name
    extra = 1
    max_num = 1
    can_delete = False
    fields = (
        *("missed", "grace_seconds", "overlap", "overlap_limit_seconds", "jitter_seconds"),
        *("paused", "paused_until", "paused_why", "paused_by"),
        *("tags", "extra"),
    )


@admin.register(PeriodicTask)
class PeriodicTaskAdmin(WithReadings, KeepsSecrets, TaskColumns, TaskActions):
    """A page of the list takes the same number of queries however many tasks are on it, or beyond it."""

    form = PeriodicTaskForm
    inlines = [TaskOptionsInline]
    list_display = [
        "name_and_notes",
        "status_badge",
        "schedule_in_words",
        "next_run",
        "last_run",
        "last_outcome",
        "task_and_badge",
        "origin",
    ]
    list_filter = [
        *(filters.StatusFilter, filters.OutcomeFilter, filters.LateFilter, filters.NextFilter, filters.LastFilter),
        *(filters.KindFilter, filters.OriginFilter, "one_off", filters.TaskFilter),
    ]
    search_fields = SEARCHED
    list_per_page = 50
    ordering = ["name"]
    readonly_fields = ["next_run", "last_run_at", "total_run_count", "date_changed", "preview", "schedule_in_words"]
    fieldsets = [
        (None, {"fields": ["name", "task", "enabled", "description"]}),
        (
            _("Schedule"),
            {
                "fields": [
                    "kind",
                    tuple(kinds.names("interval")),
                    tuple(kinds.names("crontab")[:5]),
                    "crontab_timezone",
                    tuple(kinds.names("solar")),
                    "clocked_clocked_time",
                    "preview",
                    ("start_time", "expires"),
                    "one_off",
                ],
                "classes": ["ob-schedule"],
            },
        ),
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[PeriodicTask]:
        """With all that the list and a task's text show, as far as `migrate` has made its tables."""
        rows: QuerySet[PeriodicTask] = super().get_queryset(request).select_related(*SCHEDULES)
        return rows.select_related("onebeat_state", "onebeat_options") if schema.complete(rows.db) else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[PeriodicTask], search_term: str
    ) -> tuple[QuerySet[PeriodicTask], bool]:
        """Each word or quoted phrase is in one of the fields. In one look at each task, where the fields are ours."""
        if list(self.get_search_fields(request)) != SEARCHED:
            return super().get_search_results(request, queryset, search_term)
        for word in smart_split(search_term):
            text = unescape_string_literal(word) if word[0] == word[-1] and word[0] in "\"'" else word
            queryset = task_lists.with_text(queryset, text, secrets.words())
        return queryset, False

    def get_inlines(self, request: HttpRequest, obj: PeriodicTask | None) -> Inlines:
        """The options, once `migrate` has made their table."""
        inlines = super().get_inlines(request, obj)
        if schema.complete(self.get_queryset_db()):
            return inlines
        return [inline for inline in inlines if inline.model is not TaskOptions]

    def get_changelist(self, request: HttpRequest, **kwargs: object) -> type[TaskList]:
        """The list that reads what its columns show."""
        return TaskList

    def get_fieldsets(self, request: HttpRequest, obj: PeriodicTask | None = None) -> Fieldsets:
        """A new task has not run: nothing of that is shown. Those who may only look see the schedule as it reads
        instead of the fields that it is made of.
        """
        found = list(super().get_fieldsets(request, obj))
        if obj is None:
            found = [each for each in found if "total_run_count" not in each[1]["fields"]]
        if self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj):
            return found
        own = {name for kind in kinds.MODELS for name in kinds.names(kind)} | {"kind"}
        return [(title, {**options, "fields": _viewed(options["fields"], own)}) for title, options in found]

    @admin.display(description=_("preview"))
    def preview(self, task: PeriodicTask | None) -> SafeString:
        """What the schedule means; kept up to date by our script while somebody types."""
        found = preview.of_task(task or PeriodicTask(), "", self.get_queryset_db())
        return format_html(
            '<div class="ob-preview" aria-live="polite" data-url="{}" data-object="{}">{}</div>',
            url_of(self, "preview"),
            task.pk if task and task.pk else "",
            render_to_string("onebeat/preview.html", {"preview": found}),
        )

    def get_queryset_db(self) -> str:
        """The database that the pages read."""
        return str(PeriodicTask.objects.all().db)

    def get_urls(self) -> list[URLPattern]:
        """Django's pages and ours."""
        view, own = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("preview/", view(self.preview_view), name=f"{own}_preview"),
            path("overview/", view(self.overview_view), name=f"{own}_overview"),
            path("<path:object_id>/act/<slug:name>/", view(self.act_view), name=f"{own}_act"),
            *super().get_urls(),
        ]

    def list_tools(self, request: HttpRequest) -> list[Tool]:
        """The overview, and the ledger where this site has it."""
        return [Tool(gettext("Overview"), url_of(self, "overview")), *self._ledger("")]

    def object_tools(self, request: HttpRequest, object_id: str) -> list[Tool]:
        """What can be done with the task, and its part of the ledger."""
        return [*super().object_tools(request, object_id), *self._ledger(f"?task__id__exact={quote(object_id)}")]

    def _ledger(self, query: str) -> list[Tool]:
        url = page_of(self.admin_site, Occurrence, "changelist")
        return [] if url is None else [Tool(gettext("Occurrences"), url + query)]

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        """Who is at work, what needs a person, and the load to come, for anybody who may look at tasks."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        using = self.get_queryset_db()
        if not schema.complete(using):
            return HttpResponseRedirect(url_of(self, "changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Overview"),
            "opts": self.opts,
            "media": self.media,
            "onebeat_alarm": alarm(),
            **overview.context(using),
        }
        return render(request, "onebeat/overview.html", context)

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """The preview of what is in the form at this moment, as a piece of HTML. It writes nothing.

        By POST alone, since arguments may be secret and long, and neither belongs into an address.
        """
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        key = request.POST.get("onebeat_object", "")
        task = self.get_object(request, key) if key else None
        allowed = self.has_change_permission(request, task) if task else self.has_add_permission(request)
        if not allowed:
            return HttpResponseForbidden()
        kind = cast(type[PeriodicTaskForm], self.get_form(request, task, change=task is not None))
        form = kind(request.POST, instance=task)
        touched = set(request.POST.get("onebeat_touched", "").split())
        found = preview.of_form(form, request.POST.get("onebeat_zone", ""), self.get_queryset_db(), touched)
        return render(request, "onebeat/preview.html", {"preview": found})


def _viewed(names: Iterable[Row], own: set[str]) -> list[Row]:
    found: list[Row] = []
    for name in names:
        if name == "kind":
            found.append("schedule_in_words")
        elif not ({name} if isinstance(name, str) else set(name)) & own:
            found.append(name)
    return found
