"""What the overview shows: who is at work, what needs a person, and the load to come."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin import timeline
from onebeat.admin.words import local, time_tag, zone_name
from onebeat.dispatch.celery import app as celery_app
from onebeat.queries import dashboard, forecast

#: By the state of a scheduler: what is said of it, and the badge.
STATES = {
    "able": (_("at work"), "on"),
    "starting": (_("starting"), "paused"),
    "broker_unavailable": (_("its broker is away"), "failed"),
    "broker_refuses": (_("its broker accepts no message"), "failed"),
    "standby": (_("on standby for another beat"), "paused"),
    "classic": (_("in classic mode"), "on"),
    "away": (_("not seen lately"), "failed"),
    "stopped": (_("stopped"), "off"),
}


def context(using: str) -> dict[str, object]:
    """What the page's template shows of a database."""
    found = dashboard.dashboard(using, celery_app.task_names())
    ahead = forecast.ahead(using)
    load = ahead.load
    return {
        "figures": _figures(found),
        "schedulers": [_scheduler(each, found.now) for each in found.schedulers],
        "overdue": [{**row, "tag": time_tag(row["due_at"], found.now)} for row in found.overdue],
        "found": found,
        "zone": zone_name(),
        "day": timeline.day(load),
        "week": timeline.week(load),
        "busiest_of_day": timeline.busiest(load, 24 * 60),
        "busiest_of_week": timeline.busiest(load, forecast.WEEK),
        "peaks": [(f"{local(at):%Y-%m-%d %H:%M}", timeline.runs(n)) for at, n in load.peaks(5) if n >= 1],
        "left_out": ahead.schedules_left_out or ahead.singles_left_out,
    }


def _figures(found: dashboard.Dashboard) -> list[tuple[str, str]]:
    return [
        (str(found.at_work), ngettext("scheduler at work", "schedulers at work", found.at_work)),
        (_number(found.waiting), gettext("tasks wait for their time")),
        (_number(found.overdue_count), gettext("overdue")),
        (_number(found.quarantined_count), gettext("quarantined")),
    ]


def _number(count: int) -> str:
    return f"{dashboard.COUNTED:,}+" if count > dashboard.COUNTED else f"{count:,}"


def _scheduler(found: dashboard.Scheduler, now: datetime) -> dict[str, object]:
    word, badge = STATES[found.state]
    return {
        "row": found.row,
        "word": word,
        "badge": badge,
        "seen": time_tag(found.row.seen_at, now),
        "started": time_tag(found.row.started_at, now),
    }
