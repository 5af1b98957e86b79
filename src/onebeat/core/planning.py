"""Planning: from a task's definition to the next time that it waits for. Pure functions on plain values.

An edit re-bases: the first match after the change. A save that changes neither the schedule nor `enabled` moves
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from onebeat.core import nominal_times
from onebeat.core.catchup import Policy, wait
from onebeat.core.identity import new_task_uid
from onebeat.core.recurrence import Recurrence
from onebeat.errors import Unschedulable

#: The definition that a plan was made from: the values of the columns that `TaskState` copies.
Copied = tuple[object, ...]

#: How far behind the last complete look the claim's lower bound stays: time for a plan that commits late.
LATE_COMMITS = timedelta(seconds=10)

_ALWAYS = datetime.min.replace(tzinfo=UTC)


class Task(Protocol):
    """A task as it stands now, as far as planning and deciding need it. Instants are UTC."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def one_off(self) -> bool: ...
    @property
    def total_run_count(self) -> int: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def paused_by(self) -> str: ...
    @property
    def paused_why(self) -> str: ...

    def copied(self) -> Copied:
        """What a plan depends on."""
        ...

    def check(self, anchor: datetime) -> Recurrence:
        """The recurrence, if the task can be sent as it is. Raises `Unschedulable`."""
        ...

    def starts(self) -> datetime | None:
        """The first instant at which a nominal time may lie."""
        ...

    def ends(self) -> datetime | None:
        """The last instant at which a nominal time may lie."""
        ...

    def clock(self) -> datetime | None:
        """The one instant of a clocked task; None for any other."""
        ...

    def last_run(self, *, by_the_old_beat: bool) -> datetime | None:
        """When the row says that the task ran last, read as onebeat or as django-celery-beat writes it."""
        ...

    def edited(self) -> datetime | None:
        """When the row was saved last."""
        ...


@dataclass(frozen=True, slots=True)
class State:
    """One task's plan: when it is due, and the definition that this was planned from."""

    task: int
    version: int
    #: The task's identity, and the name that it was made for.
    uid: int
    task_name: str
    due_at: datetime | None
    wake_at: datetime | None
    anchor: datetime
    water_mark: datetime | None
    quarantine: str
    #: Since when `copied` holds; None where that is not known.
    definition_since: datetime | None
    #: The occurrence that the next one waits for under `overlap = skip`.
    open_occurrence: int | None
    copied: Copied
    #: Whether the copied definition is that of a one-off, and the instant that it names.
    one_off: bool
    clocked_time: object

    def moved(self, due_at: datetime | None, wake_at: datetime | None, water_mark: datetime | None) -> State:
        """The same plan, waiting for another time."""
        # Not `replace`, which takes longer than the rest of a decision.
        return State(
            self.task, self.version, self.uid, self.task_name, due_at, wake_at, self.anchor, water_mark,
            self.quarantine, self.definition_since, self.open_occurrence, self.copied, self.one_off, self.clocked_time,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Changed:
    """When a task changed, by the database's clock: the first and the last time."""

    first: datetime
    last: datetime
    #: Some change left the task disabled.
    left_disabled: bool = False
    #: The first change after the last one that left it disabled: where a task that is enabled now begins anew.
    enabled_again: datetime | None = None
    #: Whether a hint said so; else it is when somebody looked.
    hinted: bool = True

    def joined(self, earlier: Changed | None) -> Changed:
        """This and what came before it, as one."""
        if earlier is None:
            return self
        again = earlier.enabled_again or (self.first if earlier.left_disabled else None)
        return Changed(
            min(self.first, earlier.first),
            max(self.last, earlier.last),
            self.left_disabled or earlier.left_disabled,
            None if self.left_disabled else again,
        )


def same_task(task: Task, state: State) -> bool:
    """Whether the row with the key of a plan is still the task that was planned.

    A task may be renamed, and its definition may be edited, but what has both another name and another definition is
    another task under a key that was given out again.
    """
    return task.name == state.task_name or task.copied() == state.copied


def as_planned(task: Task, state: State) -> Recurrence | None:
    """The recurrence of a task that is still what its plan was made from; None: it has to be planned first."""
    if task.copied() != state.copied:
        return None
    try:
        return task.check(state.anchor)
    except Unschedulable:
        return None


def planned(task: Task, state: State | None, changed: Changed, now: datetime, *, replaces: bool = False) -> State:
    """The plan that a task's definition asks for; `state` is the plan so far (None: the task is new here).

    `replaces`: it is new under the key of another task that is gone. Nothing fires for its past, whatever the row says
    of its last run: a person may also have given one task another name and another schedule at once.

    A task that cannot be planned is quarantined: the reason is in the plan.
    """
    # A task that is new here has its last run from django-celery-beat.
    last_run = None if replaces else task.last_run(by_the_old_beat=state is None)
    if state is None and not changed.hinted and not replaces and (edited := task.edited()) is not None:
        # It stood there before anybody looked. One that never ran waits since its last edit, as in the old beat.
        changed = replace(changed, first=min(changed.first, edited))
    anchor = state.anchor if state else last_run or changed.first
    copied = task.copied()
    same = state is not None and state.copied == copied and not changed.enabled_again
    since = changed.first if state is None else state.definition_since if same else changed.last
    after = State(
        task=task.id,
        version=state.version if state else 0,
        uid=state.uid if state else new_task_uid(),
        task_name=task.name,
        due_at=None,
        wake_at=None,
        anchor=anchor,
        water_mark=state.water_mark if state else None,
        quarantine="",
        definition_since=since,
        open_occurrence=state.open_occurrence if state else None,
        copied=copied,
        one_off=task.one_off,
        clocked_time=task.clock(),
    )
    if not task.enabled:
        return after
    try:
        recurrence = task.check(anchor)
        if state is not None and same and not state.quarantine:
            after = waiting(after, task, recurrence, state.due_at, now)
            # One that is further behind was committed after its time: the claim does not look that far back.
            overdue = state.wake_at and now - LATE_COMMITS < state.wake_at <= now and after.wake_at == now
            return replace(after, wake_at=state.wake_at) if overdue else after
        return waiting(after, task, recurrence, _first(task, recurrence, state, changed, last_run), now)
    except Unschedulable as bad:
        return quarantined(after, str(bad))
    except Exception as error:  # a fault of ours or of a library with this one row: the others go on
        return quarantined(after, f"it cannot be planned: {error!r}")


def quarantined(state: State, reason: str) -> State:
    """The plan of a task that waits for nothing until it is mended."""
    return replace(state, due_at=None, wake_at=None, quarantine=reason)


def waiting(state: State, task: Task, recurrence: Recurrence, due_at: datetime | None, now: datetime) -> State:
    """The plan, waiting for `due_at`. What is late already may leave now; no wake time lies far in the past, so that
    the claim need not look there.
    """
    if due_at is None:
        return state.moved(None, None, state.water_mark)
    try:
        wake_at = due_at + wait(recurrence, due_at, task.policy, str(task.id))
    except OverflowError:  # the last day of the calendar, as people write "never"
        wake_at = due_at
    return state.moved(due_at, max(wake_at, now), state.water_mark)


def _first(
    task: Task, recurrence: Recurrence, state: State | None, changed: Changed, last_run: datetime | None
) -> datetime | None:
    """The first nominal time of a task that is new here or whose schedule changed."""
    clock = task.clock()
    if state is None:
        if task.one_off and task.total_run_count > 0:
            return None  # taken over after it ran: it stays finished
        reference = last_run or (_ALWAYS if clock is not None else changed.enabled_again or changed.first)
    elif clock is not None and (state.quarantine or state.clocked_time != clock):
        # One instant that somebody has just named is theirs to run, even if it has passed by the time it is read: their
        # clock may be behind. Unless it is the one that ran last.
        reference = changed.last if state.water_mark == clock else _ALWAYS
    else:
        reference = changed.enabled_again or changed.last
        reference = max(reference, state.water_mark) if state.water_mark else reference
    return nominal_times.first(recurrence, reference, start_time=task.starts(), expires=task.ends())
