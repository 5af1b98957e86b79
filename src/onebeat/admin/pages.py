"""What every page of ours has: our style sheet, script and templates, the banner when no scheduler is at work, and
addresses on the site that the page belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import flatten
from django.db import router
from django.db.models import Model
from django.forms import Media, ModelForm
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from onebeat.admin import secrets
from onebeat.admin.listing import BoundedPaginator
from onebeat.admin.unchanged import StoredUnlessChanged
from onebeat.admin.words import shown, time_tag, zone_name
from onebeat.db import database_clock, schema
from onebeat.models import PeriodicTask, TaskState
from onebeat.store import global_pause, scheduler_rows

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
    AnyForm = ModelForm[Any]
else:
    AnyAdmin, AnyForm = admin.ModelAdmin, ModelForm

#: How long no scheduler may have been seen before every page says so.
SILENCE = timedelta(minutes=1)
Context = dict[str, object]


@dataclass(frozen=True, slots=True)
class Tool:
    """A link at the top of a page."""

    title: str
    url: str


def alarm() -> Context | None:
    """What the banner says: that `migrate` has yet to run, or when a scheduler was last seen, if that is too long ago
    for tasks to run, or that everything is paused. None if all is well.
    """
    using = router.db_for_read(TaskState)
    if not schema.complete(using):
        return {"lacking": True}
    now, seen = database_clock.now(using), scheduler_rows.last_seen(using)
    if seen is not None and now - seen <= SILENCE:
        everything = global_pause.global_pause(using, now)
        return {"paused": everything, "until": shown(everything.until), "zone": zone_name()} if everything else None
    return {"seen": seen, "seen_tag": time_tag(seen, now)}


def page_of(site: admin.AdminSite, model: type[Model], page: str, *args: object) -> str | None:
    """The address of a page of another model on the same site; None if the model is not registered there."""
    return url_of(site.get_model_admin(model), page, *args) if site.is_registered(model) else None


def url_of(model_admin: AnyAdmin, page: str, *args: object) -> str:
    """The address of one of an admin's pages, also of a project's own class for a proxy of the model."""
    opts = model_admin.opts
    name = f"admin:{opts.app_label}_{opts.model_name}_{page}"
    return reverse(name, args=args, current_app=model_admin.admin_site.name)


class UnchangedForm(StoredUnlessChanged, AnyForm):
    """The form of a model's page that needs no other one."""


class SavesChanges(AnyAdmin):
    """A page whose form was sent as it came writes nothing: no hint, no new `date_changed`, no new grid."""

    def save_model(self, request: HttpRequest, obj: Model, form: AnyForm, change: bool) -> None:
        """Save what somebody changed."""
        if not change or form.has_changed():
            super().save_model(request, obj, form, change)


class KeepsSecrets(AnyAdmin):
    """The pages of tasks to those who may only look: no value is shown, and none told by a filter, that a word of
    `secret_words` marks.
    """

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> PeriodicTask | None:
        """The task; its secret values masked for who may not change it."""
        task: PeriodicTask | None = super().get_object(request, object_id, from_field)
        if task is not None and not self.has_change_permission(request, task):
            for name in secrets.FIELDS:
                setattr(task, name, secrets.masked(getattr(task, name)))
        return task

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Part of Django's reading of an address."""
        if secrets.words() and lookup.split("__")[0] in secrets.FIELDS:
            return False
        return super().lookup_allowed(lookup, value, request)


class OurAdmin(SavesChanges):
    """The base of our admin classes. Its templates are its own, so that pages of anybody else's stay theirs."""

    form: type[AnyForm] = UnchangedForm
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    change_form_template = "onebeat/change_form.html"
    change_list_template = "onebeat/change_list.html"
    delete_confirmation_template = "onebeat/delete_confirmation.html"
    delete_selected_confirmation_template = "onebeat/delete_selected_confirmation.html"
    object_history_template = "onebeat/object_history.html"

    @property
    def media(self) -> Media:
        """Django's files and ours."""
        return super().media + Media(css={"all": ["onebeat/admin.css"]}, js=["onebeat/admin.js"])

    def get_changelist_form(self, request: HttpRequest, **kwargs: object) -> type[AnyForm]:
        """The form of a row that is edited in the list (`list_editable` of a project's own class)."""
        return super().get_changelist_form(request, **{"form": UnchangedForm, **kwargs})

    def list_tools(self, request: HttpRequest) -> list[Tool]:
        """The links above the list, beside Django's."""
        return []

    def object_tools(self, request: HttpRequest, object_id: str) -> list[Tool]:
        """The links above the page of one object, beside Django's."""
        return []

    def changelist_view(self, request: HttpRequest, extra_context: Context | None = None) -> HttpResponse:
        """The list, with the banner and our links."""
        context = {"onebeat_alarm": alarm(), "onebeat_tools": self.list_tools(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Context | None = None,
    ) -> HttpResponse:
        """The form, with the banner and our links."""
        tools = self.object_tools(request, object_id) if object_id else []
        context = {"onebeat_alarm": alarm(), "onebeat_tools": tools, **(extra_context or {})}
        return super().changeform_view(request, object_id, form_url, context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Context | None = None) -> HttpResponse:
        """The page that asks before it deletes, with the banner."""
        return super().delete_view(request, object_id, {"onebeat_alarm": alarm(), **(extra_context or {})})

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Context | None = None) -> HttpResponse:
        """What people did to an object, with the banner."""
        return super().history_view(request, object_id, {"onebeat_alarm": alarm(), **(extra_context or {})})


class ReadOnlyAdmin(OurAdmin):
    """Rows to look at: people change tasks; what follows from that is the engine's to write."""

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        """Every field that is shown."""
        return flatten(self.fields or [])

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a row."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody changes a row."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes a row."""
        return False
