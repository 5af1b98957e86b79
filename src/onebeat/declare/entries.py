"""Rows that were written from the settings past the sync, by django-celery-beat or in its manner, and by no person."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import connections, router
from django.db.migrations.recorder import MigrationRecorder

from onebeat.db import schema
from onebeat.declare import sources, stored
from onebeat.declare.stored import TaskValues
from onebeat.importing import settings
from onebeat.importing.rows import Row
from onebeat.models import Change, Declared, Fact, PeriodicTask
from onebeat.models.declarations import HANDED_BACK
from onebeat.models.instants import to_utc

#: The migration that takes a database over.
_TAKEN_OVER = (schema.LABEL, "1001_onebeat_engine")
#: What django-celery-beat writes at each start from an entry; it overwrites whatever a person has set there.
_WRITTEN = (stored.SCHEDULE, *stored.MESSAGE_FIELDS)


def remember_entry(name: str, task: PeriodicTask, entry: Mapping[str, object]) -> None:
    """Keep what an entry of this name says of the task that was just written from it, so that a later sync takes none
    of it for a person's hand. An entry of a kind that only a subclass can store is not remembered.
    """
    using = task._state.db or router.db_for_write(type(task))
    if not schema.complete(using):
        return
    (row,) = settings.rows({name: entry})
    if isinstance(row, Row):
        try:
            spec = sources.of_row(row, "CELERY_BEAT_SCHEDULE")
        except ValidationError:
            return
        values = {"task": task.pk, "source": "settings", "place": spec.place, "values": json.dumps(dict(spec.values))}
        known = Declared.objects.using(using).filter(pk=name, removed_at=None, **values)
        if not known.exists():
            Declared.objects.using(using).update_or_create(
                pk=name, defaults={**values, "removed_at": None, "disabled_by_sync": False}
            )


def written_by_old_beat(using: str, task: PeriodicTask, here: TaskValues) -> dict[str, object] | None:
    """The values of a row that django-celery-beat may have written from an earlier version of the settings; None if it
    cannot have: the row was changed after the take-over. `date_changed` and the time of the take-over come from hosts
    whose clocks may differ; a hint that nobody has read yet is proof of a change, whatever they say.
    """
    changed = task.date_changed
    if changed is not None and not Fact.objects.using(using).filter(name=HANDED_BACK).exists():
        applied = MigrationRecorder(connections[using]).applied_migrations().get(_TAKEN_OVER)
        at: datetime | None = getattr(applied, "applied", None)
        hinted = Change.objects.using(using).filter(kind=Change.Kind.TASK, ref=task.pk).exists()
        if hinted or at is None or to_utc(changed) > to_utc(at):
            return None
    return {name: here[name] for name in _WRITTEN}


def synced(using: str) -> None:
    """Note that the settings have been synced: whatever differs from now on is a person's hand."""
    Fact.objects.using(using).filter(name=HANDED_BACK).delete()
