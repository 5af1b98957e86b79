"""Read what a claim's decisions depend on beside the tasks: the global pause, open runs, and what has been pruned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from onebeat.core.claiming import ClaimContext
from onebeat.core.planning import State, Task
from onebeat.store import global_pause, occurrences, retention


def read(
    using: str, states: Collection[State], tasks: Mapping[int, Task], now: datetime, missed_before: datetime
) -> ClaimContext:
    """The context of the decisions on these plans, which are locked."""
    holders = [
        state.open_occurrence
        for state in states
        if state.open_occurrence and state.task in tasks and tasks[state.task].policy.overlap == "skip"
    ]
    # Only a clocked time that was set back can have been decided before.
    set_back = any(state.due_at and state.water_mark and state.due_at <= state.water_mark for state in states)
    return ClaimContext(
        now,
        missed_before,
        global_pause.global_pause(using, now),
        occurrences.running(using, holders) if holders else {},
        retention.pruned_before(using) if set_back else None,
    )
