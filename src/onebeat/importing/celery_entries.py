"""Entries of CELERY_BEAT_SCHEDULE and their kind as the fields of a task: everything in one is kept, left out with a
note, or refused by its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from celery import schedules
from django.core.exceptions import ValidationError
from kombu.utils.json import dumps

from onebeat.core.message_request import message_options, task_name
from onebeat.dispatch.celery.schedules import clocked
from onebeat.errors import InvalidMessage
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedules import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.tasks import PeriodicTask

#: Celery's kinds of schedule, the rows they become, and the task's field for these.
KINDS: tuple[tuple[object, object, str], ...] = (
    (schedules.crontab, CrontabSchedule, "crontab"),
    (schedules.schedule, IntervalSchedule, "interval"),
    (schedules.solar, SolarSchedule, "solar"),
    (clocked, ClockedSchedule, "clocked"),
)
#: What a message option is when an entry does not name it.
_OPTIONS: dict[str, object] = {
    "queue": None,
    "exchange": None,
    "routing_key": None,
    "priority": None,
    "headers": None,
    "expire_seconds": None,
}
#: What an entry may set besides: the task's other fields, but not what the engine keeps.
_FIELDS = {field.name for field in PeriodicTask._meta.concrete_fields} - {
    *("id", "name", "last_run_at", "total_run_count", "date_changed"),
}
_RELATIVE = "relative has no effect: the grid of an interval begins at start_time"
#: Options that say when, which an entry's schedule does.
_SCHEDULED = ("countdown", "eta")


@dataclass(frozen=True, slots=True)
class EntryOptions:
    """The `options` of an entry: those that a task has columns for, the others, and what is left out of them."""

    columns: dict[str, object]
    #: For `TaskOptions.extra`.
    extra: dict[str, object]
    #: A line for each option that no stored message can have.
    notes: list[str]


def kind_of(schedule: Any, kinds: tuple[tuple[Any, Any, str], ...] = KINDS) -> tuple[Any, Any, str]:
    """A schedule as an object (Celery takes numbers and timedeltas for intervals), the model of its rows and the task's
    field for them. Raises `ValidationError` for what is none.
    """
    schedule = schedules.maybe_schedule(schedule)
    for kind, model, field in kinds:
        if isinstance(schedule, kind):
            return schedule, model, field
    raise ValidationError({"schedule": f"{schedule!r}: no kind of schedule that a task can have"})


def relative_note(schedule: object, relative: object = None) -> str:
    """A note if an entry asks for `relative`, in its schedule or beside it; else empty.

    django-celery-beat drops it as well.
    """
    return _RELATIVE if relative or getattr(schedule, "relative", False) else ""


def message(
    args: Iterable[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    relative: object = None,
    **entry: object,
) -> dict[str, object]:
    """What an entry says besides its schedule and options, as fields.

    Raises `ValidationError` naming what is no field of a task that may be set, and for a task that is none.
    """
    wrong = sorted(entry.keys() - _FIELDS)
    if wrong:
        raise ValidationError({name: f"{entry[name]!r}: an entry has no such key" for name in wrong})
    if "task" in entry:
        try:
            entry["task"] = task_name(entry["task"])
        except InvalidMessage as error:
            raise ValidationError({"task": str(error)}) from error
    return {**entry, "args": text("args", list(args or [])), "kwargs": text("kwargs", kwargs or {})}


def options(given: Mapping[str, object]) -> EntryOptions:
    """The `options` of an entry. `expires` in seconds or as a timedelta ends each message; as a time it ends the task.

    Raises `ValidationError` naming each option whose value no task can have. An option that no stored message can have
    is left out with a note, since the job is worth more than the option.
    """
    named = {name: value for name, value in given.items() if value is not None}
    expires = named.pop("expires", None)
    fields = {**_OPTIONS, **{name: named.pop(name) for name in _OPTIONS.keys() & named.keys()}}
    extra, notes = _extra(named)
    fields["headers"] = text("headers", fields["headers"] or {})
    if isinstance(expires, datetime):
        fields["expires"] = from_utc(to_utc(expires))
    elif expires is not None:
        fields["expire_seconds"] = _seconds("options.expires", expires)
    if fields["expire_seconds"] is not None:
        fields["expire_seconds"] = _seconds("options.expire_seconds", fields["expire_seconds"])
        fields["expires"] = None
    return EntryOptions(fields, extra, notes)


def _extra(named: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    extra: dict[str, object] = {}
    notes = []
    for name, value in sorted(named.items()):
        if name in _SCHEDULED:
            notes.append(f"options.{name} is left out: the schedule says when")
            continue
        try:
            extra |= message_options({name: value})[1]
        except InvalidMessage as error:
            notes.append(f"options.{name} is left out: {str(error).removeprefix(f'{name}: ')}")
    return extra, notes


def text(name: str, value: object) -> str:
    """A value as JSON with Celery's own encoding of dates and the like. Raises `ValidationError` naming the field."""
    try:
        return str(dumps(value))
    except Exception as error:  # whatever an object's own encoder raises
        raise ValidationError({name: f"JSON cannot hold this: {error}"}) from error


def _seconds(name: str, value: object) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise ValidationError({name: f"{value!r}: a number of seconds is needed"})
    return math.ceil(seconds)
