"""What a form means, before it is saved: the schedule in words, its coming runs, and what the change does to them.

Computed by the same code as the engine's plans. Nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from django.utils.translation import gettext, ngettext

from onebeat.admin import words
from onebeat.admin.forms import EMPTY, PeriodicTaskForm
from onebeat.admin.listing import options_of
from onebeat.core import run_diff
from onebeat.core.describe import note
from onebeat.core.recurrence import Cron, Recurrence, zone
from onebeat.errors import InvalidSchedule
from onebeat.models import PeriodicTask
from onebeat.models.instants import to_utc
from onebeat.models.schedule_value import ScheduleValue
from onebeat.queries import task_lists
from onebeat.queries.stored_plan import stored_plan

#: How many coming runs are shown.
COUNT = 6
#: How many users of the same schedule are named.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Row:
    """One run: on the wall clocks of its own zone, of the viewer's and in UTC."""

    own: str
    viewer: str
    utc: str
    fate: str
    note: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a field, or may not be meant. `field` is its name, `label` what people call it."""

    field: str
    label: str
    text: str


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
    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    unfilled: bool = False


def of_form(form: PeriodicTaskForm, viewer: str, using: str, touched: set[str]) -> Preview:
    """The preview of a bound form; only a field that a person has been in (`touched`) is said to be empty."""
    found = Preview()

    def fault(name: str, text: str) -> Fault:
        return Fault(name, str(form.fields[name].label or name) if name in form.fields else "", text)

    for name, errors in form.errors.as_data().items():
        for error in errors:
            if error.code not in EMPTY or name in touched:
                found.errors += [fault(name, str(text)) for text in error.messages]
    found.warnings = [fault(name, text) for name, text in form.warnings()]
    return _described(found, form.instance, form.schedule, viewer, using)


def of_task(task: PeriodicTask, viewer: str, using: str) -> Preview:
    """The preview of a task as it is, or as a form that was refused left it."""
    return _described(Preview(), task, task.scheduler, viewer, using)


def _described(found: Preview, task: PeriodicTask, schedule: ScheduleValue | None, viewer: str, using: str) -> Preview:
    plan = stored_plan(using, task.pk, COUNT)
    start = None if task.start_time is None else to_utc(task.start_time)
    end = None if task.expires is None else to_utc(task.expires)
    try:
        rule = None if schedule is None else schedule.recurrence(start or plan.anchor)
    except InvalidSchedule:
        rule = None
    if schedule is None or rule is None:
        found.unfilled = not found.errors
        return found
    found.description, found.raw = words.schedule_words(schedule), words.schedule_raw(schedule)
    own, here = rule.tz if isinstance(rule, Cron) else words.here(), _viewer(viewer)
    found.zone, found.viewer = str(own), str(here) if here and str(here) not in (str(own), "UTC") else ""
    ahead = run_diff.coming(rule, plan.now, COUNT, start_time=start, expires=end, one_off=bool(task.one_off))
    runs = [run_diff.Run(at) for at in ahead]
    if task.enabled and plan.runs is not None:
        runs = run_diff.compare(plan.runs, ahead, COUNT)
    found.changed = any(run.fate != "same" for run in runs)
    found.rows = [_row(run, rule, own, here) for run in runs]
    found.notes = [*_notes(found, task, rule, plan.now), *_shared(task, schedule, using)]
    return found


def _row(run: run_diff.Run, rule: Recurrence, own: tzinfo, here: tzinfo | None) -> Row:
    fate = {
        "new": gettext("new"),
        "gone": gettext("no longer"),
        "moved": gettext("moved from %(time)s") % {"time": wall(run.before, own)} if run.before else "",
    }.get(run.fate, "")
    said = note(rule, run.at, gettext) if isinstance(rule, Cron) and run.fate != "gone" else ""
    return Row(wall(run.at, own), wall(run.at, here) if here else "", f"{run.at:%Y-%m-%d %H:%M:%S}", fate, said)


def wall(instant: datetime, tz: tzinfo) -> str:
    """An instant on a zone's wall clock, with the day of the week."""
    try:
        local = instant.astimezone(tz)
    except OverflowError:
        local = instant
    return f"{gettext(f'{local:%a}')} {local:%Y-%m-%d %H:%M:%S}"


def _notes(found: Preview, task: PeriodicTask, rule: Recurrence, now: datetime) -> list[str]:
    notes = []
    if not task.enabled:
        notes.append(gettext("The task is off: nothing runs until it is enabled."))
    elif not found.rows:
        notes.append(gettext("No run lies ahead."))
    options = options_of(task)
    if options is not None and options.paused:
        notes.append(gettext("The task is paused: its runs are skipped until it is resumed."))
    if isinstance(rule, Cron):
        said = dict.fromkeys(
            f"{run.astimezone(rule.tz):%Y-%m-%d}: {text}"
            for run in run_diff.around_clock_changes(rule, now)
            if (text := note(rule, run, gettext))
        )
        notes += list(said)[:4]
        if rule.day_of_month != "*" and rule.day_of_week != "*":
            notes.append(gettext("Both must match: the day of the month and the day of the week."))
    return notes


def _shared(task: PeriodicTask, schedule: ScheduleValue, using: str) -> list[str]:
    """Who else runs on the same row: a person who edits one task wants to hear that the others stay as they are."""
    names = task_lists.sharing(using, schedule, task.pk, _NAMED + 1)
    if not names:
        return []
    shown = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    text = ngettext(
        "One other task runs on this schedule and stays as it is: %(names)s.",
        "Other tasks run on this schedule and stay as they are: %(names)s.",
        len(names),
    )
    return [text % {"names": shown}]


def _viewer(name: str) -> tzinfo | None:
    try:
        return zone(name) if name else None
    except InvalidSchedule:
        return None
