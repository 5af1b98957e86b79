"""The overview: who is at work, what needs a person, and the load to come."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import timeline
from onebeat.admin.pages import alarm
from onebeat.admin.words import time_tag, zone_name
from onebeat.db import schema
from onebeat.dispatch.celery import app as celery_app
from onebeat.models.instants import project_zone
from onebeat.queries import dashboard, forecast

STATES = {
    "at work": _("at work"),
    "broker away": _("its broker is away"),
    "away": _("not seen lately"),
    "stopped": _("stopped"),
}
_BADGES = {"at work": "on", "broker away": "failed", "away": "failed", "stopped": "off"}


def view(model_admin: Any, request: Any) -> Any:
    """The page, for anybody who may look at tasks."""
    if not model_admin.has_view_or_change_permission(request):
        raise PermissionDenied
    using = model_admin.get_queryset_db()
    if not schema.complete(using):
        return HttpResponseRedirect(model_admin.url_of("changelist"))
    names = celery_app.task_names()
    found = dashboard.dashboard(using, names)
    ahead = forecast.ahead(using)
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Overview"),
        "opts": model_admin.opts,
        "media": model_admin.media,
        "onebeat_alarm": alarm(request),
        "figures": _figures(found),
        "schedulers": [_scheduler(one, found.now) for one in found.schedulers],
        "overdue": [{**row, "tag": time_tag(row["due_at"], found.now)} for row in found.overdue],
        "found": found,
        "zone": zone_name(),
        "day": timeline.day(ahead.load, local),
        "week": timeline.week(ahead.load, local),
        "busiest_of_day": timeline.busiest(ahead.load, 24 * 60, local),
        "busiest_of_week": timeline.busiest(ahead.load, forecast.WEEK, local),
        "peaks": [
            (f"{local(at):%Y-%m-%d %H:%M}", timeline.runs(count)) for at, count in ahead.load.peaks(5) if count >= 1
        ],
        "left_out": ahead.schedules_left_out or ahead.singles_left_out,
    }
    return render(request, "onebeat/overview.html", context)


def local(instant: datetime) -> datetime:
    """An instant on the clock that the pages show."""
    return instant.astimezone(timezone.get_current_timezone() if settings.USE_TZ else project_zone())


def _figures(found: dashboard.Dashboard) -> list[tuple[str, str]]:
    return [
        (str(found.at_work), ngettext("scheduler at work", "schedulers at work", found.at_work)),
        (_number(found.waiting), gettext("tasks wait for their time")),
        (_number(found.overdue_count), gettext("overdue")),
        (_number(found.quarantined_count), gettext("quarantined")),
    ]


def _number(count: int) -> str:
    return f"{dashboard.COUNTED:,}+" if count > dashboard.COUNTED else f"{count:,}"


def _scheduler(one: dashboard.Scheduler, now: datetime) -> dict[str, Any]:
    return {
        "row": one.row,
        "word": STATES[one.state],
        "badge": _BADGES[one.state],
        "seen": time_tag(one.row.seen_at, now),
        "started": time_tag(one.row.started_at, now),
    }
