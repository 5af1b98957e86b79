"""Tasks: what to send, when, and what became of it last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL
from django.http import HttpResponse, HttpResponseForbidden, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import smart_split, unescape_string_literal
from django.utils.translation import gettext_lazy as _

from onebeat.admin import filters, kinds, overview, preview, secrets
from onebeat.admin.acting import ACTS
from onebeat.admin.actions import TaskActions
from onebeat.admin.columns import TaskColumns
from onebeat.admin.forms import PeriodicTaskForm, TaskOptionsForm
from onebeat.admin.listing import TaskList
from onebeat.admin.pages import OurAdmin
from onebeat.admin.words import WithReadings
from onebeat.db import expressions, schema
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.task_rules import SCHEDULES

if TYPE_CHECKING:
    OptionsInline = admin.StackedInline[TaskOptions, PeriodicTask]
else:
    OptionsInline = admin.StackedInline

#: What a search looks through: columns of the task.
SEARCHED = ["name", "task", "args", "kwargs"]


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
class PeriodicTaskAdmin(WithReadings, TaskActions, TaskColumns, OurAdmin):
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
    actions = list(ACTS)
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

    def get_queryset(self, request: Any) -> Any:
        """With all that the list and a task's text show, as far as `migrate` has made its tables."""
        rows = super().get_queryset(request).select_related(*SCHEDULES)
        return rows.select_related("onebeat_state", "onebeat_options") if schema.complete(rows.db) else rows

    def get_search_results(self, request: Any, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """As Django's: each word or quoted phrase is in one of the fields. In one look at each task, where the fields
        are ours.
        """
        if list(self.get_search_fields(request)) != SEARCHED:
            return super().get_search_results(request, queryset, search_term)
        table = self.opts.db_table
        for word in smart_split(search_term):
            text = unescape_string_literal(word) if word[0] == word[-1] and word[0] in "\"'" else word
            sql, params = expressions.holds(queryset.db, table, SEARCHED, text)
            queryset = queryset.filter(RawSQL(sql, params, output_field=BooleanField()))
        return queryset, False

    def get_inlines(self, request: Any, obj: Any) -> Any:
        """The options, once `migrate` has made their table."""
        inlines = super().get_inlines(request, obj)
        if schema.complete(self.get_queryset_db()):
            return inlines
        return [one for one in inlines if one.model is not TaskOptions]

    def get_changelist(self, request: Any, **kwargs: Any) -> Any:
        """Our list."""
        return TaskList

    def get_fieldsets(self, request: Any, obj: Any = None) -> Any:
        """For those who may only look, the schedule as it reads instead of the fields it is made of."""
        found = self._without_runs(super().get_fieldsets(request, obj), obj)
        if self._may_edit(request, obj):
            return found
        own = {name for kind in kinds.MODELS for name in kinds.names(kind)} | {"kind"}
        return [(title, {**options, "fields": _viewed(options["fields"], own)}) for title, options in found]

    def _without_runs(self, found: Any, obj: Any) -> Any:
        """A new task has not run: nothing to show of it."""
        return found if obj is not None else [one for one in found if "total_run_count" not in one[1]["fields"]]

    def _may_edit(self, request: Any, obj: Any) -> bool:
        return self.has_add_permission(request) if obj is None else self.has_change_permission(request, obj)

    def get_object(self, request: Any, object_id: str, from_field: Any = None) -> Any:
        """As Django's; who may only look is shown no secret value."""
        task = super().get_object(request, object_id, from_field)
        if task is not None and not self.has_change_permission(request, task):
            for name in secrets.FIELDS:
                setattr(task, name, secrets.masked(getattr(task, name)))
        return task

    @admin.display(description=_("preview"))
    def preview(self, task: Any) -> SafeString:
        """What the schedule means; kept up to date by our script while somebody types."""
        url = self.url_of("preview")
        found = preview.of_task(task or PeriodicTask(), "", self.get_queryset_db())
        content = render(None, "onebeat/preview.html", {"preview": found}).content.decode()
        return format_html(
            '<div class="ob-preview" aria-live="polite" data-url="{}" data-object="{}">{}</div>',
            url,
            task.pk if task and task.pk else "",
            SafeString(content),
        )

    def get_queryset_db(self) -> str:
        """The database that the pages read."""
        return str(PeriodicTask.objects.all().db)

    def get_urls(self) -> Any:
        """Django's and ours."""
        view, own = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("preview/", view(self.preview_view), name=f"{own}_preview"),
            path("overview/", view(self.overview_view), name=f"{own}_overview"),
            path("<path:object_id>/act/<slug:name>/", view(self.act_view), name=f"{own}_act"),
            *super().get_urls(),
        ]

    def changeform_view(
        self, request: Any, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """As Django's, with the links to what can be done with the task."""
        task = self.get_object(request, object_id) if object_id else None
        context = {"onebeat_acts": self.onebeat_acts(request, task) if task else [], **(extra_context or {})}
        return super().changeform_view(request, object_id, form_url, context)

    def overview_view(self, request: Any) -> HttpResponse:
        """Who is at work, what needs a person, and the load to come."""
        page: HttpResponse = overview.view(self, request)
        return page

    def preview_view(self, request: Any) -> HttpResponse:
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
        form = self.get_form(request, task, change=task is not None)(request.POST, instance=task)
        touched = set(request.POST.get("onebeat_touched", "").split())
        found = preview.of_form(form, request.POST.get("onebeat_zone", ""), self.get_queryset_db(), touched)
        return render(request, "onebeat/preview.html", {"preview": found})


def _viewed(names: Any, own: set[str]) -> list[Any]:
    found: list[Any] = []
    for name in names:
        if name == "kind":
            found.append("schedule_in_words")
        elif not (set(name) if isinstance(name, tuple) else {name}) & own:
            found.append(name)
    return found
