"""Entries of CELERY_BEAT_SCHEDULE stored as tasks: what the settings say replaces what the row says."""

from __future__ import annotations

from typing import Any

from onebeat.models import PeriodicTask


def store(name: str, fields: dict[str, Any]) -> PeriodicTask:
    """Make the task `name` or bring it to these fields, and leave it alone if it has them.

    Raises `ValidationError` naming what is wrong.
    """
    PeriodicTask(name=name, **fields).clean_fields()
    row = PeriodicTask.objects.filter(name=name).first()
    if row is not None and row.clocked_id is not None and fields.get("clocked") is None:
        # It was one-off because it was clocked, and the schedule that it has now would run once.
        fields = {"one_off": False, **fields}
    if row is None or any(getattr(row, key) != value for key, value in fields.items()):
        row = PeriodicTask.objects.update_or_create(name=name, defaults=fields)[0]
    return row
