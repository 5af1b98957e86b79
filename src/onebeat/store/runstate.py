"""`last_run_at`, `total_run_count` and a finished one-off's `enabled`, kept up for those who read the old columns.

Written late, in batches, past rows that somebody holds. Nothing is decided by these columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from django.conf import settings
from django.db.models import F, Value
from django.db.models.functions import Coalesce, Greatest, Least

from onebeat.models import Occurrence, PeriodicTask, TaskState
from onebeat.models.instants import from_utc
from onebeat.store import definitions, states, vendors
from onebeat.store.batches import among
from onebeat.store.definitions import COPIED

#: What the old column holds at most.
_MANY = 2**31 - 1


@dataclass(slots=True)
class Runs:
    """What is not yet in a task's row: how many times it was sent, and when last."""

    count: int
    last: datetime

    def add(self, at: datetime) -> None:
        self.count += 1
        self.last = max(self.last, at)


class Reader(Protocol):
    """Somebody who looks at the rows that run state is written to."""

    def found(self, task: int, last_run_at: datetime | None, changed: datetime, sent: datetime) -> None: ...
    def wrote(self, task: int, at: datetime) -> None: ...


def flush(using: str, runs: Mapping[int, Runs], reader: Reader | None = None) -> set[int]:
    """Write these into their tasks' rows. Returns the tasks that are written or gone; the others are held by
    somebody. `reader` is told what stood there, and what stands there now.
    """
    with vendors.short_transaction(using):
        tasks = PeriodicTask._base_manager.using(using)
        rows = tasks.filter(among(using, "pk", runs))
        columns = ("pk", "last_run_at", "date_changed")
        found = list(rows.select_for_update(skip_locked=True).order_by("pk").values_list(*columns))
        free = {row[0] for row in found}
        there = free if len(free) == len(runs) else set(rows.values_list("pk", flat=True))
        alike: defaultdict[tuple[int, datetime], list[int]] = defaultdict(list)
        for task in sorted(free):
            alike[runs[task].count, runs[task].last].append(task)
        for (count, last), those in alike.items():
            tasks.filter(among(using, "pk", those)).update(
                total_run_count=Least(F("total_run_count"), _MANY - count) + count,
                last_run_at=_later(Value(from_utc(last), _last_run_field())),
            )
        _finish(using, free)
    for task, last_run_at, changed in found if reader else ():
        reader.found(task, last_run_at, changed, runs[task].last)  # type: ignore[union-attr]
        reader.wrote(task, runs[task].last)  # type: ignore[union-attr]
    return free | (set(runs) - there)


def _later(at: Value) -> Any:
    """`at`, unless another scheduler has written a later run already. Local wall clocks go back in autumn, and cannot
    tell."""
    return Greatest(Coalesce(F("last_run_at"), at), at) if settings.USE_TZ else at


def _last_run_field() -> Any:
    return PeriodicTask._meta.get_field("last_run_at")


def finish(using: str, limit: int) -> int:
    """Disable finished one-offs that a lost scheduler left enabled. Returns how many candidates were looked at."""
    # Those that have a lease are the claimed ones, and there is an index on it: the ledger is long.
    open_ones = Occurrence.objects.using(using).filter(lease_until__isnull=False).values("task_id")
    done = TaskState.objects.using(using).filter(
        one_off=True, enabled=True, due_at=None, water_mark__isnull=False, quarantine=""
    )
    with vendors.short_transaction(using):
        ids = list(done.exclude(pk__in=open_ones).values_list("pk", flat=True)[:limit])
        if ids:
            rows = PeriodicTask._base_manager.using(using).filter(pk__in=ids)
            _finish(using, set(rows.select_for_update(skip_locked=True).values_list("pk", flat=True)))
    return len(ids)


def _finish(using: str, tasks: set[int]) -> None:
    """Set `enabled = False` on those of these locked tasks that are one-offs, have nothing left to send, and whose
    definition is the one they ran by: an edit made meanwhile stays."""
    planned = states.lock_finished(using, tasks)
    if not planned:
        return
    same = [task for task, one in definitions.fetch(using, planned).items() if one.copied() == planned[task].copied]
    PeriodicTask._base_manager.using(using).filter(among(using, "pk", same), enabled=True).update(enabled=False)
    off = COPIED.index("enabled")
    states.write(
        using,
        [_with(planned[task], off, False) for task in sorted(same) if planned[task].copied[off]],
        plan=True,
    )


def _with(state: states.State, index: int, value: object) -> states.State:
    copied = (*state.copied[:index], value, *state.copied[index + 1 :])
    return replace(state, copied=copied)
