"""What every page of ours has: our style sheet and script, and the banner when no scheduler is at work."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db import router
from django.forms import Media
from django.urls import reverse

from onebeat.admin.listing import BoundedPaginator
from onebeat.admin.words import shown, time_tag, zone_name
from onebeat.db import database_clock, schema
from onebeat.models import TaskState
from onebeat.store import global_pause, scheduler_rows

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin

#: How long no scheduler may have been seen before every page says so.
SILENCE = timedelta(minutes=1)


def alarm(request: Any) -> dict[str, Any] | None:
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


class OurAdmin(AnyAdmin):
    """The base of our admin classes."""

    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    @property
    def media(self) -> Media:
        """Django's and ours."""
        return super().media + Media(css={"all": ["onebeat/admin.css"]}, js=["onebeat/admin.js"])

    def changelist_view(self, request: Any, extra_context: Any = None) -> Any:
        """As Django's, with the banner."""
        return super().changelist_view(request, self._with_alarm(request, extra_context))

    def changeform_view(
        self, request: Any, object_id: Any = None, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """As Django's, with the banner."""
        return super().changeform_view(request, object_id, form_url, self._with_alarm(request, extra_context))

    def delete_view(self, request: Any, object_id: Any, extra_context: Any = None) -> Any:
        """As Django's, with the banner."""
        return super().delete_view(request, object_id, self._with_alarm(request, extra_context))

    def history_view(self, request: Any, object_id: Any, extra_context: Any = None) -> Any:
        """As Django's, with the banner."""
        return super().history_view(request, object_id, self._with_alarm(request, extra_context))

    def url_of(self, name: str, *args: Any) -> str:
        """The address of one of this admin's pages, also of a project's own class for a proxy of the model."""
        full = f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}"
        return reverse(full, args=args, current_app=self.admin_site.name)

    def _with_alarm(self, request: Any, extra: Any) -> dict[str, Any]:
        return {"onebeat_alarm": alarm(request), **(extra or {})}
