"""Reschedule, cancel, and what became of a task that runs once.

The plan of the task is held meanwhile: a scheduler has claimed it before, and then it is too late, or leaves it alone
until this transaction ends. What decides is read under these locks, so that an old snapshot does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from onebeat.core import catchup
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.db import bulk_rows, transactions
from onebeat.errors import InvalidArgument
from onebeat.models import ClockedSchedule, Occurrence, PeriodicTask
from onebeat.models.instants import to_utc
from onebeat.queries import task_lookup
from onebeat.store import definitions, occurrences, plans, task_states
from onebeat.store.definitions import COPIED
from onebeat.verbs import once_rows

#: waiting: it will run. claimed to failed: as the ledger says. skipped: decided, not sent. cancelled: taken back.
#: disabled: switched off otherwise. quarantined: it cannot run as it is. finished: the record of its run is gone.
OnceState = Literal[
    "waiting",
    "claimed",
    "sent",
    "started",
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
    "disabled",
    "quarantined",
    "finished",
]

#: Of these the one run is still to come, or can be asked for anew.
_OPEN = ("waiting", "skipped", "disabled", "quarantined")
_CLOCKED, _TIME = COPIED.index("clocked"), COPIED.index("clocked_time")


@dataclass(frozen=True, slots=True)
class Found:
    """A task that runs once, as it stands; `at` is its instant, `mark` that of its last verdict."""

    task: PeriodicTask
    state: OnceState
    at: datetime
    mark: datetime | None
    #: The task's, 0 if it has no plan yet.
    uid: int = 0


def look(using: str, tasks: Sequence[PeriodicTask]) -> list[Found]:
    """Tasks as they stand. Raises `InvalidArgument` for one that is none to run once at an instant."""
    return _found(using, tasks, task_states.read(using, [task.pk for task in tasks]))


def hold(using: str, key: int) -> Found | None:
    """A task, held until the transaction ends; None if it is gone. Raises as `look`."""
    task = task_lookup.tasks(using).select_for_update().filter(pk=key).first()
    return None if task is None else _found(using, [task], task_states.hold(using, [key]))[0]


def key_of(using: str, name: str) -> int | None:
    """The primary key of the task that has this key; None if there is none."""
    found = task_lookup.find(using, name)
    return None if found is None else found[0]


def reschedule(using: str, found: Found, at: datetime, *, renew: bool) -> bool:
    """Give a held task another instant; `renew`: also one that was cancelled.

    Returns False if it has run, or was decided about at that instant or later, or waits for it already.
    """
    decided = found.mark is not None and at <= found.mark
    possible = found.state in _OPEN or (renew and found.state == "cancelled")
    if not possible or decided or (found.state == "waiting" and found.at == at):
        return False
    ((schedule, _),) = once_rows.clocked(using, [at]).values()
    # That it was taken back at this instant once is no verdict on the run that is asked for now.
    before = Occurrence.objects.using(using).filter(task_id=found.task.pk, due_at=at, run=0, reason=Reason.CANCELLED)
    for key in before.values_list("pk", flat=True):  # by its key: MySQL would lock the gap if there is none
        Occurrence.objects.using(using).filter(pk=key).update(reason=Reason.EDITED)
    PeriodicTask.objects.using(using).filter(pk=found.task.pk).update(clocked=schedule, enabled=True)
    return True


def cancel(using: str, found: Found, detail: str, now: datetime) -> bool:
    """Take a held task back. Returns False if it had its verdict before, other than this one."""
    if found.state in ("cancelled", "disabled"):
        return True
    if found.state not in ("waiting", "quarantined"):
        return False
    named = definitions.gone(found.task.pk, found.task.name)  # an old snapshot may not show the task
    skip = catchup.Skip(found.at, found.at, Reason.CANCELLED)
    uid = found.uid or plans.uid(using, found.task.pk, found.task.name, now)
    occurrences.skip(using, [occurrences.Skipped(named, uid, skip, detail)], now)
    PeriodicTask.objects.using(using).filter(pk=found.task.pk).update(enabled=False)
    return True


def _found(using: str, tasks: Sequence[PeriodicTask], planned: Mapping[int, State]) -> list[Found]:
    times = _times(using, {task.clocked_id for task in tasks if task.clocked_id is not None})
    instants: dict[int, datetime] = {}
    for task in tasks:
        time = None if task.clocked_id is None else times.get(task.clocked_id)
        if time is None or not task.one_off:
            raise InvalidArgument(f"key: {task.name!r} does not run once at an instant; pause or disable it instead")
        instants[task.pk] = to_utc(time)
    known: dict[tuple[int, datetime], tuple[str, str]] = {}
    for part in bulk_rows.portions(instants):
        recorded = Occurrence.objects.using(using).filter(task_id__in=part, run=0)
        for key, due_at, state, reason in recorded.values_list("task_id", "due_at", "state", "reason"):
            known[key, due_at] = state, reason
    found = []
    for task in tasks:
        at, plan = instants[task.pk], planned.get(task.pk)
        clock = (task.clocked_id, times.get(task.clocked_id or 0))
        current = plan is not None and (plan.copied[_CLOCKED], plan.copied[_TIME]) == clock
        state = _state(task, plan if current else None, at, *known.get((task.pk, at), ("", "")))
        found.append(Found(task, state, at, plan.water_mark if plan else None, plan.uid if plan else 0))
    return found


def _state(task: PeriodicTask, plan: State | None, at: datetime, recorded: str, reason: str) -> OnceState:
    """`plan` is the one that was made for this instant, if it was made already."""
    if plan is not None and plan.water_mark is not None and plan.water_mark >= at:
        if recorded == Occurrence.State.SKIPPED:
            return "cancelled" if reason == Reason.CANCELLED else "skipped"
        return cast(OnceState, recorded) if recorded else "finished"
    if not task.enabled:
        return "cancelled" if reason == Reason.CANCELLED else "disabled"
    return "quarantined" if plan is not None and plan.quarantine else "waiting"


def _times(using: str, schedules: set[int]) -> dict[int, datetime]:
    found: dict[int, datetime] = {}
    for part in bulk_rows.portions(schedules):
        clocks = ClockedSchedule._base_manager.using(using).filter(pk__in=part)
        found |= dict(clocks.values_list("pk", "clocked_time"))
        if len(found) < len(part) and transactions.snapshot_may_hide_rows(using):
            for key in set(part) - found.keys():  # one by one, as a locking read of many may scan
                found |= dict(clocks.filter(pk=key).select_for_update().values_list("pk", "clocked_time"))
    return found
