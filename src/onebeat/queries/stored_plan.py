"""The coming runs of a task as it is stored, beside which a form shows those of what is being typed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from onebeat.core import run_diff
from onebeat.db import database_clock, schema
from onebeat.errors import Unschedulable
from onebeat.store import definitions, task_states


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """`now` by the database's clock; where the task's grid begins; its next runs, None if it has no rule to compare
    with (a new task), and none if it is off or broken.
    """

    now: datetime
    anchor: datetime
    runs: list[datetime] | None


def stored_plan(using: str, task_id: int | None, count: int) -> StoredPlan:
    """The next `count` runs of a task; `task_id` is None for one that is not saved. Writes nothing."""
    now = database_clock.now(using)
    if task_id is None or not schema.complete(using):
        return StoredPlan(now, now, None)
    state = task_states.read(using, [task_id]).get(task_id)
    stored = definitions.fetch(using, [task_id]).get(task_id)
    anchor = state.anchor if state else now
    if stored is None:
        return StoredPlan(now, anchor, None)
    runs: list[datetime] = []
    if stored.enabled:
        try:
            rule = stored.check(anchor)
        except Unschedulable:
            return StoredPlan(now, anchor, [])
        starts, ends = stored.starts(), stored.ends()
        runs = run_diff.coming(rule, now, count, start_time=starts, expires=ends, one_off=stored.one_off)
    return StoredPlan(now, anchor, runs)
