"""Whether a task runs, and if not, why: one word and one sentence for the list and the form."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.listing import beside
from onebeat.admin.words import shown, zone_name
from onebeat.models import PeriodicTask


class Status(NamedTuple):
    """`key` is one of `CHOICES`."""

    key: str
    word: str
    why: str


CHOICES = [
    ("on", _("on")),
    ("paused", _("paused")),
    ("finished", _("finished")),
    ("off", _("off")),
    ("aside", _("set aside")),
]


def status(task: PeriodicTask, now: datetime) -> Status:
    """The status of a task read with its state and options."""
    state, options = beside(task, "onebeat_state"), beside(task, "onebeat_options")
    words = dict(CHOICES)

    def of(key: str, why: str = "") -> Status:
        return Status(key, str(words[key]), why)

    if state is not None and state.quarantine:
        return of("aside", state.quarantine)
    if not task.enabled:
        return of("finished") if task.one_off and task.total_run_count else of("off")
    if state is not None and state.due_at is None and state.enabled:
        return of("finished", gettext("Nothing is to come."))
    if options is not None and options.paused and (options.paused_until is None or options.paused_until > now):
        return of("paused", _pause(options))
    return of("on") if state is not None else of("on", gettext("No scheduler has seen it yet."))


def _pause(options: Any) -> str:
    parts = []
    if options.paused_until is not None:
        parts.append(gettext("until %(time)s") % {"time": f"{shown(options.paused_until)} {zone_name()}"})
    if options.paused_why:
        parts.append(options.paused_why)
    if options.paused_by:
        parts.append(gettext("by %(who)s") % {"who": options.paused_by})
    return ", ".join(parts)


def having(rows: QuerySet[PeriodicTask], key: str, now: datetime) -> QuerySet[PeriodicTask]:
    """Those of the rows that `status` gives this key."""
    if key == "aside":
        return rows.filter(onebeat_state__quarantine__gt="")
    aside = Q(onebeat_state__quarantine__gt="")
    done = Q(one_off=True, total_run_count__gt=0)
    if key == "off":
        return rows.filter(enabled=False).exclude(done).exclude(aside)
    ended = Q(enabled=True, onebeat_state__due_at__isnull=True, onebeat_state__enabled=True)
    if key == "finished":
        return rows.filter(Q(done, enabled=False) | ended).exclude(aside)
    until = Q(onebeat_options__paused_until__isnull=True) | Q(onebeat_options__paused_until__gt=now)
    paused = Q(onebeat_options__paused=True) & until
    rows = rows.filter(enabled=True).exclude(aside).exclude(ended)
    if key == "paused":
        return rows.filter(paused)
    return rows.filter(Q(onebeat_options__isnull=True) | ~paused)
