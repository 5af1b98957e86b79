"""What a form means, before it is saved: the schedule in words, its coming runs, and what the change does to them.

Computed by the same code as the engine's plans. Reads the database, never writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, ngettext

from onebeat.admin import words
from onebeat.admin.listing import beside
from onebeat.core import run_diff
from onebeat.core.describe import note
from onebeat.core.planning import State
from onebeat.core.recurrence import Cron, Recurrence, zone
from onebeat.db import database_clock, schema
from onebeat.errors import InvalidSchedule, Unschedulable
from onebeat.models import PeriodicTask
from onebeat.models.instants import project_zone, to_utc
from onebeat.store import definitions, task_states

#: How many coming runs are shown.
COUNT = 6
#: How many users of the same schedule are named.
_NAMED = 5


@dataclass
class Row:
    """One run: on the wall clocks of its own zone, of the viewer's and in UTC."""

    own: str
    viewer: str
    utc: str
    fate: str = ""
    note: str = ""


@dataclass
class Preview:
    """What the fragment shows."""

    description: str = ""
    raw: str = ""
    zone: str = ""
    viewer: str = ""
    rows: list[Row] = field(default_factory=list)
    changed: bool = False
    notes: list[str] = field(default_factory=list)
    errors: list[tuple[str, str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str, str]] = field(default_factory=list)
    unfilled: bool = False


def of_form(form: Any, viewer: str, using: str, touched: set[str] | None = None) -> Preview:
    """The preview of a bound form; `touched`: only fields that a person has been in may be called empty."""
    valid = form.is_valid()
    found = Preview()
    if not valid:
        for name, errors in form.errors.items():
            for error in errors.as_data() if hasattr(errors, "as_data") else []:
                if error.code == "required" and (touched is None or name not in touched):
                    continue
                label = str(form.fields[name].label or name) if name in form.fields else ""
                found.errors += [(name, label, str(text)) for text in error.messages]
    found.warnings = [(name, str(form.fields[name].label), text) for name, text in form.warnings()]
    _describe(found, form.instance, form.schedule, viewer, using)
    return found


def of_task(task: PeriodicTask, viewer: str, using: str) -> Preview:
    """The preview of a task as it is, or as a form that was refused left it."""
    found = Preview()
    _describe(found, task, task.scheduler, viewer, using)
    return found


def _describe(found: Preview, task: Any, schedule: Any, viewer: str, using: str) -> None:
    now = database_clock.now(using)
    state = _state(task, using)
    start = _instant(task.start_time)
    try:
        if schedule is None:
            raise InvalidSchedule("schedule", None, "none is chosen")
        rule = schedule.recurrence(start or (state.anchor if state else now))
    except InvalidSchedule:
        found.unfilled = not found.errors
        return
    found.description, found.raw = words.schedule_words(schedule), words.schedule_raw(schedule)
    own = rule.tz if isinstance(rule, Cron) else _project()
    theirs = _viewer(viewer)
    found.zone, found.viewer = str(own), str(theirs) if theirs and str(theirs) not in (str(own), "UTC") else ""
    ahead = run_diff.coming(
        rule, now, COUNT, start_time=start, expires=_instant(task.expires), one_off=bool(task.one_off)
    )
    runs = _compared(task, ahead, now, using) if task.enabled else [run_diff.Run(at) for at in ahead]
    found.changed = any(run.fate != "same" for run in runs)
    found.rows = [_row(run, rule, own, theirs) for run in runs]
    _notes(found, task, schedule, rule, now, using)


def _compared(task: Any, ahead: list[datetime], now: datetime, using: str) -> list[run_diff.Run]:
    """The coming runs beside those that are planned now; a new task has none that could change."""
    planned = _planned(task, now, using) if task.pk and schema.complete(using) else None
    if planned is None:
        return [run_diff.Run(at) for at in ahead]
    return run_diff.compare(planned, ahead, COUNT)


def _planned(task: Any, now: datetime, using: str) -> list[datetime] | None:
    """The next runs of the stored task; None if it has no rule to compare with."""
    stored = definitions.fetch(using, [task.pk]).get(task.pk)
    state = _state(task, using)
    if stored is None:
        return None
    if not stored.enabled:
        return []
    try:
        rule = stored.check(state.anchor if state else now)
    except Unschedulable:
        return []
    starts, ends = stored.starts(), stored.ends()
    return run_diff.coming(rule, now, COUNT, start_time=starts, expires=ends, one_off=stored.one_off)


def _row(run: run_diff.Run, rule: Recurrence, own: Any, theirs: Any) -> Row:
    fate = {
        "new": gettext("new"),
        "gone": gettext("no longer"),
        "moved": gettext("moved from %(time)s") % {"time": wall(run.before, own)} if run.before else "",
    }.get(run.fate, "")
    said = note(rule, run.at, gettext) if isinstance(rule, Cron) and run.fate != "gone" else ""
    return Row(wall(run.at, own), wall(run.at, theirs) if theirs else "", f"{run.at:%Y-%m-%d %H:%M:%S}", fate, said)


def wall(instant: datetime, tz: Any) -> str:
    """An instant on a zone's wall clock, with the day of the week."""
    try:
        local = instant.astimezone(tz)
    except OverflowError:
        local = instant
    return f"{gettext(f'{local:%a}')} {local:%Y-%m-%d %H:%M:%S}"


def _notes(found: Preview, task: Any, schedule: Any, rule: Recurrence, now: datetime, using: str) -> None:
    if not task.enabled:
        found.notes.append(gettext("The task is off: nothing runs until it is enabled."))
    elif not found.rows:
        found.notes.append(gettext("No run lies ahead."))
    options = beside(task, "onebeat_options")
    if options is not None and options.paused:
        found.notes.append(gettext("The task is paused: its runs are skipped until it is resumed."))
    if isinstance(rule, Cron):
        said = dict.fromkeys(
            f"{run.astimezone(rule.tz):%Y-%m-%d}: {text}"
            for run in run_diff.around_clock_changes(rule, now)
            if (text := note(rule, run, gettext))
        )
        found.notes += list(said)[:4]
        if rule.day_of_month != "*" and rule.day_of_week != "*":
            found.notes.append(gettext("Both must match: the day of the month and the day of the week."))
    found.notes += _shared(task, schedule, using)


def _shared(task: Any, schedule: Any, using: str) -> list[str]:
    """Who else runs on the same row: a person who edits one task wants to hear that the others stay as they are."""
    row = schedule if schedule.pk else schedule.twin(using)
    if row is None:
        return []
    users = PeriodicTask._base_manager.using(using).filter(**{f"{row.KIND}_id": row.pk}).exclude(pk=task.pk)
    names = list(users.order_by("name").values_list("name", flat=True)[: _NAMED + 1])
    if not names:
        return []
    shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    text = ngettext(
        "One other task runs on this schedule and stays as it is: %(names)s.",
        "Other tasks run on this schedule and stay as they are: %(names)s.",
        len(names),
    )
    return [text % {"names": shown}]


def _state(task: Any, using: str) -> State | None:
    return task_states.read(using, [task.pk]).get(task.pk) if task.pk and schema.complete(using) else None


def _instant(value: Any) -> datetime | None:
    return None if value is None else to_utc(value)


def _project() -> Any:
    return timezone.get_current_timezone() if settings.USE_TZ else project_zone()


def _viewer(name: str) -> ZoneInfo | None:
    try:
        return zone(name) if name else None
    except InvalidSchedule:
        return None
