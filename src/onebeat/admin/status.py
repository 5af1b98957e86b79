"""Whether a task runs, and if not, why: one word and one sentence for the list and the form."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.listing import options_of, state_of
from onebeat.admin.words import shown, zone_name
from onebeat.models import PeriodicTask, TaskOptions


class Status(NamedTuple):
    """`key` is one of `CHOICES`, `word` its name for people, `why` a sentence or empty."""

    key: str
    word: str
    why: str


CHOICES = {
    "on": _("on"),
    "paused": _("paused"),
    "finished": _("finished"),
    "off": _("off"),
    "quarantined": _("quarantined"),
}


def status(task: PeriodicTask, now: datetime) -> Status:
    """The status of a task that was read with its state and options."""
    key, why = _status(task, now)
    return Status(key, str(CHOICES[key]), why)


def _status(task: PeriodicTask, now: datetime) -> tuple[str, str]:
    state, options = state_of(task), options_of(task)
    if state is not None and state.quarantine:
        return "quarantined", state.quarantine
    if not task.enabled:
        return "finished" if task.one_off and task.total_run_count else "off", ""
    if state is not None and state.due_at is None and state.enabled:
        return "finished", gettext("Nothing is to come.")
    if options is not None and options.paused and (options.paused_until is None or options.paused_until > now):
        return "paused", _pause(options)
    return "on", "" if state is not None else gettext("No scheduler has seen it yet.")


def _pause(options: TaskOptions) -> str:
    parts = []
    if options.paused_until is not None:
        parts.append(gettext("until %(time)s") % {"time": f"{shown(options.paused_until)} {zone_name()}"})
    if options.paused_why:
        parts.append(options.paused_why)
    if options.paused_by:
        parts.append(gettext("by %(who)s") % {"who": options.paused_by})
    return ", ".join(parts)
