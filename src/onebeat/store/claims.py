"""Claim: take due tasks in one short transaction, write their occurrences, move `due_at` on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from onebeat.core import claiming, planning
from onebeat.core.planning import State
from onebeat.db import database_clock, transactions
from onebeat.store import batches, claim_context, definitions, events, occurrences, plans, task_states
from onebeat.store.occurrences import Claimed, Skipped

logger = logging.getLogger("onebeat")


@dataclass(slots=True)
class Batch:
    """What one claim brought: occurrences to publish, under one token."""

    token: int
    now: datetime
    occurrences: list[Claimed] = field(default_factory=list)
    #: Whether more may be waiting than this batch could hold.
    more: bool = False
    #: The wake time of the oldest one.
    oldest: datetime | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """On whose behalf and under which terms occurrences are claimed."""

    beat: int
    lease: timedelta
    limit: int
    #: Given the present instant: nominal times before it could not be kept by any scheduler and are missed.
    missed_before: Callable[[datetime], datetime]


def due(using: str, terms: Terms, wake_lower_bound: datetime | None, settled: Collection[int] = ()) -> Batch:
    """Claim what is due, oldest first. A task whose definition is not the one it was planned from is planned, not
    sent.

    `wake_lower_bound`: as for `task_states.lock_due`. `settled`: the tokens of batches that are done with, which are
    removed in the same commit.
    """
    with transactions.short_transaction(using):
        now = database_clock.now(using)
        batch = Batch(batches.new_token(now), now)
        if settled:
            batches.close(using, settled)
        states = task_states.lock_due(using, wake_lower_bound, now, terms.limit)
        batch.more = len(states) == terms.limit
        if not states:
            return batch
        batch.oldest = states[0].wake_at
        tasks = definitions.fetch(using, [state.task for state in states])
        context = claim_context.read(using, states, tasks, now, terms.missed_before(now))
        claim = claiming.decide(states, tasks, context, terms.limit)
        batch.more = batch.more or claim.more
        for task, state, error in claim.failed:
            logger.error("task %r (%s) cannot be decided", task.name, task.id, exc_info=error)
            claim.moved.append(planning.quarantined(state, f"it cannot be decided: {error!r}"))
            events.quarantined(using, task.id, task.name, claim.moved[-1].quarantine)
        plans.forget(using, claim.gone, now)
        occurrences.skip(using, [Skipped(task, state.uid, skip, words) for task, state, skip, words in claim.skip], now)
        batch.occurrences = occurrences.claim(
            using,
            [(task, state.uid, due_at) for task, state, due_at in claim.send],
            token=batch.token,
            beat=terms.beat,
            now=now,
        )
        if batch.occurrences:
            batches.add(using, batch.token, terms.beat, now + terms.lease)
        task_states.write(using, _running(claim.moved, batch.occurrences), plan=False)
        if claim.replaced:
            plans.plan(using, claim.replaced, now)
        if claim.changed:
            changes = plans.changes(using, [task for task, _ in claim.changed], now)
            plans.again(using, claim.changed, changes, now)
    return batch


def _running(moved: Sequence[State], claimed: Iterable[Claimed]) -> list[State]:
    """The plans with the occurrence that the next one of each task waits for, where runs must not overlap."""
    last = {one.task.id: one.id for one in claimed if one.task.policy.overlap == "skip"}
    return [replace(state, open_occurrence=last[state.task]) if state.task in last else state for state in moved]
