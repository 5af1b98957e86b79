"""What a claim decides by beside the task itself: the global pause, runs that are open, and what has been pruned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from onebeat.core import catchup
from onebeat.core.catchup import Decision, Policy, Running, Skip
from onebeat.core.recurrence import Recurrence
from onebeat.store import global_pause, occurrences, retention
from onebeat.store.definitions import Definition
from onebeat.store.global_pause import Pause
from onebeat.store.occurrences import Claimed
from onebeat.store.task_states import State

_FOREVER = datetime.max.replace(tzinfo=UTC)
#: The reason of a time that cannot be sent because it may have been sent before.
PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """Read once for each claim, and the same for all its tasks."""

    using: str
    now: datetime
    #: Turns before this instant could not be kept by any scheduler.
    missed_before: datetime
    pause: Pause | None = None
    #: Of the open runs that stand in the way of another: nominal time, and since when, by occurrence.
    open: Mapping[int, tuple[datetime, datetime]] = field(default_factory=dict)

    def policy(self, definition: Definition) -> Policy:
        """The task's policy under the global pause."""
        if self.pause is None:
            return definition.policy
        until = self.pause.until or _FOREVER
        own = definition.policy.paused_until
        return replace(definition.policy, paused_until=until if own is None else max(own, until))

    def paused(self, definition: Definition) -> str:
        """By whom the task is paused, and why."""
        if definition.policy.paused_until is None or definition.policy.paused_until <= self.now:
            return "" if self.pause is None else self.pause.words()
        return f"paused{global_pause.words(definition.paused_by, definition.paused_why)}"

    def detail(self, definition: Definition, skip: Skip) -> str:
        """What the ledger keeps with a verdict beside its reason."""
        return self.paused(definition) if skip.reason == catchup.PAUSED else ""

    def running(self, definition: Definition, state: State) -> Running | None:
        """The run that stands in the way of the task's next."""
        found = self.open.get(state.open_occurrence or 0)
        return None if found is None else Running(found[0], found[1] + definition.policy.overlap_limit)

    def decide(self, definition: Definition, state: State, recurrence: Recurrence, limit: int) -> Decision:
        """The verdict on each nominal time of a task up to now; `state.due_at` is the oldest one without."""
        assert state.due_at is not None
        decision = catchup.decide(
            recurrence,
            state.due_at,
            self.now,
            self.policy(definition),
            missed_before=self.missed_before,
            expires=definition.ends(),
            one_off=definition.one_off,
            key=str(definition.id),
            limit=limit,
            running=self.running(definition, state),
        )
        mark = state.water_mark
        if mark is None or not any(due_at <= mark for due_at in decision.send):
            return decision
        # A clocked time may be set back to one that has been. The ledger knows whether it ran, unless it was pruned.
        pruned = retention.pruned_before(self.using)
        again = [due_at for due_at in decision.send if pruned and due_at <= min(mark, pruned)]
        skips = [Skip(one, one, PRUNED, why="decided before; the record has been pruned") for one in again]
        return replace(
            decision,
            send=tuple(due_at for due_at in decision.send if due_at not in again),
            skips=(*decision.skips, *skips),
        )


def claim_context(
    using: str, planned: Iterable[State], found: Mapping[int, Definition], now: datetime, missed_before: datetime
) -> ClaimContext:
    """What the decisions on these tasks depend on, read after their states are locked."""
    holders = [
        state.open_occurrence
        for state in planned
        if state.open_occurrence and state.task in found and found[state.task].policy.overlap == "skip"
    ]
    return ClaimContext(
        using,
        now,
        missed_before,
        global_pause.global_pause(using, now),
        occurrences.running(using, holders) if holders else {},
    )


def holding(moved: Sequence[State], claimed: Iterable[Claimed]) -> list[State]:
    """The states with the occurrence that the next one of each task waits for, where tasks run one at a time."""
    last = {one.task.id: one.id for one in claimed if one.task.policy.overlap == "skip"}
    return [replace(state, open_occurrence=last[state.task]) if state.task in last else state for state in moved]
