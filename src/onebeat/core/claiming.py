"""What a claim decides about the tasks that are due: which nominal times are sent, which are skipped, what waits next.

One pure call, between reading and writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

from onebeat.core import catchup, planning
from onebeat.core.catchup import Decision, Policy, Running, Skip
from onebeat.core.planning import State, Task
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Recurrence
from onebeat.core.text import all_paused, by_whom

T = TypeVar("T", bound=Task)

_FOREVER = datetime.max.replace(tzinfo=UTC)
#: A task makes up for missed times no faster than one in so long.
_PACE = timedelta(seconds=1) / catchup.SEND_LIMIT


class GlobalPause(Protocol):
    """The pause of everything."""

    @property
    def until(self) -> datetime | None: ...
    @property
    def by(self) -> str: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """What decides beside the tasks themselves, read once for each claim and the same for all its tasks."""

    now: datetime
    #: Nominal times before this instant could not be kept by any scheduler: they are missed.
    missed_before: datetime
    pause: GlobalPause | None = None
    #: Of the open runs that stand in the way of another: nominal time, and since when, by the occurrence's key.
    open: Mapping[int, tuple[datetime, datetime]] = field(default_factory=dict)
    #: Records of nominal times before this may have been pruned.
    pruned_before: datetime | None = None

    def policy(self, task: Task) -> Policy:
        """The task's policy under the global pause."""
        if self.pause is None:
            return task.policy
        until = self.pause.until or _FOREVER
        own = task.policy.paused_until
        return replace(task.policy, paused_until=until if own is None else max(own, until))

    def pause_words(self, task: Task) -> str:
        """By whom the task is paused, and why, as the ledger keeps it."""
        if task.policy.paused_until is None or task.policy.paused_until <= self.now:
            return "" if self.pause is None else all_paused(self.pause.by, self.pause.why)
        return f"paused{by_whom(task.paused_by, task.paused_why)}"

    def running(self, task: Task, state: State) -> Running | None:
        """The run that stands in the way of the task's next one."""
        found = self.open.get(state.open_occurrence or 0)
        return None if found is None else Running(found[0], found[1] + task.policy.overlap_limit)

    def decide(self, task: Task, state: State, recurrence: Recurrence, limit: int) -> Decision:
        """The decision on each nominal time of a task up to now; `state.due_at` is the oldest one without."""
        assert state.due_at is not None
        decision = catchup.decide(
            recurrence,
            state.due_at,
            self.now,
            self.policy(task),
            missed_before=self.missed_before,
            expires=task.ends(),
            one_off=task.one_off,
            key=str(task.id),
            limit=limit,
            running=self.running(task, state),
        )
        # A clocked time may be set back to one that has been. The ledger knows whether it ran, unless it was pruned.
        mark, pruned = state.water_mark, self.pruned_before
        if mark is None or pruned is None or not any(due_at <= mark for due_at in decision.send):
            return decision
        again = [due_at for due_at in decision.send if due_at <= min(mark, pruned)]
        skips = [Skip(due_at, due_at, Reason.PRUNED) for due_at in again]
        return replace(
            decision,
            send=tuple(due_at for due_at in decision.send if due_at not in again),
            skips=(*decision.skips, *skips),
        )


@dataclass(slots=True)
class Claim(Generic[T]):
    """What is to be written for one claim."""

    #: To send: the task, its plan as it was, the nominal time.
    send: list[tuple[T, State, datetime]] = field(default_factory=list)
    #: Not to send, with what the ledger keeps of it in words.
    skip: list[tuple[T, State, Skip, str]] = field(default_factory=list)
    #: The plans that wait for another time now.
    moved: list[State] = field(default_factory=list)
    #: Tasks whose definition is not the one that they were planned from: they are planned, not sent.
    changed: list[tuple[T, State]] = field(default_factory=list)
    #: Plans without a task.
    gone: list[State] = field(default_factory=list)
    #: Keys under which there is another task by now.
    replaced: list[int] = field(default_factory=list)
    #: Tasks that no decision could be made about: they are quarantined.
    failed: list[tuple[T, State, Exception]] = field(default_factory=list)
    #: Whether more is due than the claim could hold.
    more: bool = False


def decide(rows: Sequence[State], tasks: Mapping[int, T], context: ClaimContext, limit: int) -> Claim[T]:
    """Decide about the plans that are due, oldest first; `tasks` are those that are there, by key.

    At most `limit` messages are claimed, and of those each task that is due has its part: none waits behind another
    one's long backlog.
    """
    claim: Claim[T] = Claim()
    for position, state in enumerate(rows):
        left = limit - len(claim.send)
        if not left:
            claim.more = True
            break
        task = tasks.get(state.task)
        if task is None:
            claim.gone.append(state)
        elif not planning.same_task(task, state):
            claim.replaced.append(state.task)
        elif state.due_at is None or (recurrence := planning.as_planned(task, state)) is None:
            claim.changed.append((task, state))
        else:
            share = min(catchup.SEND_LIMIT, max(1, left // (len(rows) - position)))
            try:
                _decide_one(claim, task, state, recurrence, context, share)
            except Exception as error:  # a fault of ours or of a library with this one task: the others go on
                claim.failed.append((task, state, error))
    return claim


def _decide_one(
    claim: Claim[T], task: T, state: State, recurrence: Recurrence, context: ClaimContext, share: int
) -> None:
    decision = context.decide(task, state, recurrence, share)
    after = planning.waiting(state, task, recurrence, decision.due_at, context.now)
    wake_at, mark = after.wake_at, state.water_mark
    for decided in (*decision.send, *(skip.last for skip in decision.skips)):
        mark = decided if mark is None or decided > mark else mark
    if decision.send and after.due_at is not None and after.due_at < context.missed_before:
        # What was missed is made up for at a bounded rate. What is only late goes out as fast as it can.
        wake_at = context.now + len(decision.send) * _PACE
    claim.send += [(task, state, due_at) for due_at in decision.send]
    paused = context.pause_words(task) if decision.skips else ""
    claim.skip += [(task, state, skip, paused if skip.reason == Reason.PAUSED else "") for skip in decision.skips]
    claim.moved.append(after.moved(after.due_at, wake_at, mark))
    # One task's own limit is a rate: what is over it waits for the next tick. The claim's limit is not.
    cut = share < catchup.SEND_LIMIT and len(decision.send) == share
    claim.more = claim.more or (cut and wake_at is not None and wake_at <= context.now)
