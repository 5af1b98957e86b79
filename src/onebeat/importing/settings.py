"""Entries of `CELERY_BEAT_SCHEDULE`: those of the Celery app, else those of the project's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError

from onebeat.importing.celery_entries import relative_note
from onebeat.importing.rows import Refused, Row, of_celery, of_entry, read_row


def entries(app: Any) -> tuple[str, Mapping[str, Any]]:
    """Where they are declared, in words, and the entries by name.

    What the project's modules add to the app with `add_periodic_task` is among them.
    """
    app.loader.import_default_modules()
    app.finalize()
    if declared := app.conf.beat_schedule:
        return f"beat_schedule of the Celery app {app.main!r}", declared
    return "CELERY_BEAT_SCHEDULE of the settings", getattr(settings, "CELERY_BEAT_SCHEDULE", None) or {}


def rows(declared: Mapping[str, object]) -> Iterator[Row | Refused]:
    """One for each entry."""
    for name, entry in declared.items():
        yield read_row(str(name), lambda name=name, entry=entry: _row(str(name), entry))  # type: ignore[misc]


def _row(name: str, entry: object) -> Row:
    if not isinstance(entry, Mapping):
        raise ValidationError(f"{entry!r}: an entry is a dict")
    return of_entry(name, entry, *of_celery(entry.get("schedule")), relative_note(None, entry.get("relative")))
