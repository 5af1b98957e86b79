"""What is coming: the nominal times ahead, with what pauses, jitter and clock changes make of them. Reads only."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from onebeat.core import nominal_times as rules
from onebeat.core import planning
from onebeat.core.catchup import wait
from onebeat.core.claiming import ClaimContext
from onebeat.core.describe import note
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Cron
from onebeat.db import bulk_rows
from onebeat.errors import Unschedulable
from onebeat.models import Occurrence, TaskState
from onebeat.queries.task_lookup import Named
from onebeat.store import claim_context, definitions, plans, task_states
from onebeat.store.definitions import Definition

#: What is said of a time that is due already.
OVERDUE = "overdue: decided as soon as a scheduler is at work"


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One nominal time ahead of now, by what is known now."""

    #: The name of the periodic task.
    task: str
    #: The nominal time (UTC).
    due_at: datetime
    #: When its message leaves: the nominal time and the task's jitter (UTC).
    leaves_at: datetime
    #: Why nothing will be sent: "paused" or "cancelled"; empty when a message will leave.
    skipped: str = ""
    #: What a clock change does to this time, or that it is overdue; empty on an ordinary day.
    note: str = ""

    @property
    def sends(self) -> bool:
        """Whether a message will leave."""
        return not self.skipped


def upcoming(using: str, of: Named | None, count: int, until: datetime | None, now: datetime) -> list[Upcoming]:
    """The next `count` nominal times of these tasks (None: of all), not after `until`, by when they leave."""
    if of is None:
        # Each of these has a time before any of the others, so that no more of them are needed.
        first = TaskState.objects.using(using).filter(wake_at__isnull=False).order_by("wake_at")
        keys = list(first.values_list("pk", flat=True)[:count])
    else:
        keys = list(of)
    ahead = []
    paused = claim_context.read(using, (), {}, now, now)
    for part in bulk_rows.portions(keys):
        found, planned = definitions.fetch(using, part), task_states.read(using, part)
        since = plans.changes(using, found.values(), now)
        taken_out = _taken_out(using, part)
        for key, definition in found.items():
            begins = _begins(definition, planned.get(key), since[key], now)
            if begins:
                ahead.append(_times(definition, *begins, until, taken_out.get(key, {}), paused))
    merged = heapq.merge(*ahead, key=lambda one: (one.leaves_at, one.task))
    return list(islice(merged, count))


def _begins(
    definition: Definition, state: State | None, since: planning.Changed, now: datetime
) -> tuple[datetime, datetime] | None:
    """The task's next nominal time and the anchor of its grid; None if nothing follows."""
    try:
        if definition.broken or not definition.enabled:
            return None
        definition.check(state.anchor if state else since.first)
    except Unschedulable:
        return None
    if state is None or state.copied != definition.copied() or state.quarantine:
        state = planning.planned(definition, state, since, now)
    return None if state.due_at is None else (state.due_at, state.anchor)


def _times(
    definition: Definition,
    due_at: datetime,
    anchor: datetime,
    until: datetime | None,
    taken_out: Mapping[datetime, str],
    around: ClaimContext,
) -> Iterator[Upcoming]:
    recurrence, paused, now = definition.check(anchor), around.policy(definition).paused_until, around.now
    at: datetime | None = due_at
    while at is not None and (until is None or at <= until):
        try:
            leaves_at = at + wait(recurrence, at, definition.policy, str(definition.id))
        except OverflowError:  # the last day of the calendar
            leaves_at = at
        skipped = Reason.PAUSED if paused is not None and paused > at else taken_out.get(at, "")
        words = note(recurrence, at) if isinstance(recurrence, Cron) else ""
        yield Upcoming(definition.name, at, max(leaves_at, now), skipped, OVERDUE if leaves_at < now else words)
        at = None if definition.one_off else rules.following(recurrence, at, expires=definition.ends())


def _taken_out(using: str, tasks: list[int]) -> dict[int, dict[datetime, str]]:
    """The times ahead that somebody has taken out, with the reason."""
    found: dict[int, dict[datetime, str]] = {}
    decided = Occurrence.objects.using(using).filter(
        task_id__in=tasks, run=0, state=Occurrence.State.SKIPPED, reason=Reason.CANCELLED
    )
    for key, due_at, reason in decided.values_list("task_id", "due_at", "reason"):
        found.setdefault(key, {})[due_at] = reason
    return found
