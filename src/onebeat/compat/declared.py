"""Entries of CELERY_BEAT_SCHEDULE as the fields of a task: every option is kept or refused by its name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from kombu.utils.json import dumps

from onebeat.models import PeriodicTask
from onebeat.models.instants import from_utc, to_utc

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


def others(given: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry sets besides its schedule, arguments and options. Raises `ValidationError` naming what is no field
    of a task that may be set.
    """
    wrong = sorted(given.keys() - _FIELDS)
    if wrong:
        raise ValidationError({name: f"{given[name]!r}: an entry has no such key" for name in wrong})
    return dict(given)


def text(name: str, value: Any) -> str:
    """A value as JSON with Celery's own encoding of dates and the like. Raises `ValidationError` naming the field."""
    try:
        return str(dumps(value))
    except Exception as error:  # whatever an object's own encoder raises
        raise ValidationError({name: f"JSON cannot hold this: {error}"}) from error


def store(name: str, fields: dict[str, Any]) -> PeriodicTask:
    """Make the task `name` or bring it to these fields, and leave it alone if it has them.

    Raises `ValidationError` naming what is wrong.
    """
    PeriodicTask(name=name, **fields).clean_fields()
    row = PeriodicTask.objects.filter(name=name).first()
    if row is None or any(getattr(row, key) != value for key, value in fields.items()):
        row = PeriodicTask.objects.update_or_create(name=name, defaults=fields)[0]
    return row


def _seconds(name: str, value: Any) -> int:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds != int(seconds):
        raise ValidationError({name: f"{value!r}: whole seconds are needed"})
    return int(seconds)
