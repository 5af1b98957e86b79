"""Entries of CELERY_BEAT_SCHEDULE and their kind as the fields of a task: everything in one is kept, or refused by its
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from celery import schedules
from django.core.exceptions import ValidationError
from kombu.utils.json import dumps

from onebeat.dispatch.celery.schedules import clocked
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedules import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule
from onebeat.models.tasks import PeriodicTask

#: Celery's kinds of schedule, the rows they become, and the task's field for these.
KINDS: tuple[tuple[Any, Any, str], ...] = (
    (schedules.crontab, CrontabSchedule, "crontab"),
    (schedules.schedule, IntervalSchedule, "interval"),
    (schedules.solar, SolarSchedule, "solar"),
    (clocked, ClockedSchedule, "clocked"),
)
#: What a message option is when an entry does not name it.
_OPTIONS: dict[str, Any] = {
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
_RELATIVE = {"relative": "True: a task's interval has its grid from start_time"}


def kind_of(schedule: Any, kinds: tuple[tuple[Any, Any, str], ...] = KINDS) -> tuple[Any, Any, str]:
    """A schedule as an object (Celery takes numbers and timedeltas for intervals), the model of its rows and the task's
    field for them. Raises `ValidationError` for what is none.
    """
    schedule = schedules.maybe_schedule(schedule)
    if getattr(schedule, "relative", False):
        raise ValidationError(_RELATIVE)
    for kind, model, field in kinds:
        if isinstance(schedule, kind):
            return schedule, model, field
    raise ValidationError({"schedule": f"{schedule!r}: no kind of schedule that a task can have"})


def message(args: Any = None, kwargs: Any = None, relative: Any = None, **entry: Any) -> dict[str, Any]:
    """What an entry says besides its schedule and options, as fields.

    Raises `ValidationError` naming what is no field of a task that may be set.
    """
    if relative:
        raise ValidationError(_RELATIVE)
    wrong = sorted(entry.keys() - _FIELDS)
    if wrong:
        raise ValidationError({name: f"{entry[name]!r}: an entry has no such key" for name in wrong})
    return {**entry, "args": text("args", list(args or [])), "kwargs": text("kwargs", kwargs or {})}


def options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The `options` of an entry as fields. `expires` in seconds or as a timedelta ends each message; as a time it ends
    the task. Raises `ValidationError` naming each option that has no place in a task.
    """
    named = {name: value for name, value in given.items() if value is not None}
    expires = named.pop("expires", None)
    wrong = sorted(named.keys() - _OPTIONS.keys())
    if wrong:
        raise ValidationError({f"options.{name}": f"{named[name]!r}: a task has no such option" for name in wrong})
    fields = {**_OPTIONS, **named}
    fields["headers"] = text("headers", fields["headers"] or {})
    if isinstance(expires, datetime):
        fields["expires"] = from_utc(to_utc(expires))
    elif expires is not None:
        fields["expire_seconds"] = _seconds("options.expires", expires)
    if fields["expire_seconds"] is not None:
        fields["expire_seconds"] = _seconds("options.expire_seconds", fields["expire_seconds"])
        fields["expires"] = None
    return fields


def text(name: str, value: Any) -> str:
    """A value as JSON with Celery's own encoding of dates and the like. Raises `ValidationError` naming the field."""
    try:
        return str(dumps(value))
    except Exception as error:  # whatever an object's own encoder raises
        raise ValidationError({name: f"JSON cannot hold this: {error}"}) from error


def _seconds(name: str, value: Any) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds % 1:
        raise ValidationError({name: f"{value!r}: whole seconds are needed"})
    return int(seconds)
