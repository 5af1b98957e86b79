"""`last_run_at`, `total_run_count` and a finished one-off's `enabled`, kept up for those who read the old columns.

Written late, in batches, past rows that somebody holds. Nothing is decided by these columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.conf import settings
from django.db import connections
from django.db.models import QuerySet

from onebeat.db import database_clock, transactions, upserts
from onebeat.db.reads import among, array, prepared
from onebeat.models import PeriodicTask, TaskState
from onebeat.models.instants import from_utc
from onebeat.store import batches, definitions, task_states

#: A scheduler that has not recorded a finished one-off within this time is lost.
_LOST = timedelta(seconds=60)

#: What the old column holds at most.
_MANY = 2**31 - 1
#: With their PostgreSQL types.
_COLUMNS = {"total_run_count": "integer", "last_run_at": "timestamptz"}


@dataclass(slots=True)
class Runs:
    """What is not yet in a task's row: how many times it was sent, and when last."""

    count: int
    last: datetime

    def add(self, at: datetime) -> None:
        self.count += 1
        self.last = max(self.last, at)


class Reader(Protocol):
    """Somebody who looks at the rows that run counts are written to."""

    def found(self, task: int, last_run_at: datetime | None, changed: datetime, sent: datetime) -> None: ...
    def wrote(self, task: int, at: datetime) -> None: ...


def flush(using: str, runs: Mapping[int, Runs], reader: Reader | None = None) -> set[int]:
    """Write these into their tasks' rows. Returns the tasks that are written or gone; the others are held by
    somebody. `reader` is told what stood there, and what stands there now.
    """
    with transactions.short_transaction(using):
        columns = ("pk", "last_run_at", "date_changed", "total_run_count")

        def rows() -> QuerySet[PeriodicTask]:
            return PeriodicTask._base_manager.using(using).filter(among(using, "pk", runs))

        def free_ones() -> QuerySet[Any, Any]:
            return rows().select_for_update(skip_locked=True).order_by("pk").values_list(*columns)

        found = list(prepared(using, "run state", [array(runs)], free_ones))
        free = {row[0] for row in found}
        there = free if len(free) == len(runs) else set(rows().values_list("pk", flat=True))
        # They are locked: what was read is what stands there.
        link, field = connections[using], PeriodicTask._meta.get_field("last_run_at")
        written = [
            (task, _sum(count, runs[task]), field.get_db_prep_save(_later(last, runs[task]), link))
            for task, last, _, count in found
        ]
        upserts.update_rows(using, PeriodicTask._meta.db_table, ["id"], _COLUMNS, written)
        _finish(using, free)
    for task, last_run_at, changed, _ in found if reader else ():
        reader.found(task, last_run_at, changed, runs[task].last)  # type: ignore[union-attr]
        reader.wrote(task, runs[task].last)  # type: ignore[union-attr]
    return free | (set(runs) - there)


def _sum(count: object, runs: Runs) -> int:
    """SQLite's column may hold anything."""
    return min(_MANY, (count if isinstance(count, int) else 0) + runs.count)


def _later(last: datetime | None, runs: Runs) -> datetime:
    """Their last run, unless another scheduler has written a later one already. Local wall clocks go back in autumn,
    and cannot tell."""
    at = from_utc(runs.last)
    return max(last, at) if last is not None and settings.USE_TZ else at


def finish(using: str, limit: int) -> int:
    """Disable finished one-offs that a lost scheduler left enabled. Returns how many candidates were looked at.

    What has run just now is left to the scheduler that sent it, which writes it with its other run counts.
    """
    open_ones = batches.open_ones(using).values("task_id")
    done = TaskState.objects.using(using).filter(
        one_off=True, enabled=True, due_at=None, water_mark__isnull=False, quarantine=""
    )
    with transactions.short_transaction(using):
        old = done.filter(water_mark__lt=database_clock.now(using) - _LOST)
        ids = list(old.exclude(pk__in=open_ones).values_list("pk", flat=True)[:limit])
        if ids:
            rows = PeriodicTask._base_manager.using(using).filter(pk__in=ids)
            _finish(using, set(rows.select_for_update(skip_locked=True).values_list("pk", flat=True)))
    return len(ids)


def _finish(using: str, tasks: set[int]) -> None:
    """Set `enabled = False` on those of these locked tasks that are one-offs, have nothing left to send, and whose
    definition is the one they ran by: an edit made meanwhile stays."""
    planned = task_states.lock_finished(using, tasks)
    if not planned:
        return
    same = [task for task, one in definitions.fetch(using, planned).items() if one.copied() == planned[task].copied]
    if not same:
        return
    PeriodicTask._base_manager.using(using).filter(among(using, "pk", same), enabled=True).update(enabled=False)
    task_states.disable(using, same)
