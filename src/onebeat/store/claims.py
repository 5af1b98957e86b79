"""Claim: take due tasks in one short transaction, write their occurrences, move `due_at` on.

Recover: take occurrences whose scheduler was lost, decide them again, and publish them under the same id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from onebeat.core import catchup
from onebeat.db import database_clock, transactions
from onebeat.store import claim_context, definitions, events, occurrences, plans, task_states
from onebeat.store.definitions import Definition
from onebeat.store.occurrences import Claimed, Skipped
from onebeat.store.task_states import State

#: Where the count of claims ends: a broker that refuses for hours must not overflow its column.
_MANY = 32_000
#: A task makes up for missed times no faster than one in so long.
_PACE = timedelta(seconds=1) / catchup.SEND_LIMIT

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
    #: Given the present instant: turns before it could not be kept by any scheduler and count as missed.
    missed_before: Callable[[datetime], datetime]


def due(using: str, terms: Terms, floor: datetime | None) -> Batch:
    """Claim what is due, oldest first. A task whose definition is not the one it was planned from is planned, not
    fired.
    """
    with transactions.short_transaction(using):
        now = database_clock.now(using)
        batch = Batch(secrets.randbits(62), now)
        rows = task_states.lock_due(using, floor, now, terms.limit)
        batch.more = len(rows) == terms.limit
        if not rows:
            return batch
        batch.oldest = rows[0].wake_at
        found = definitions.fetch(using, [state.task for state in rows])
        around = claim_context.claim_context(using, rows, found, now, terms.missed_before(now))
        sends: list[tuple[Definition, int, datetime]] = []
        skips: list[Skipped] = []
        moved: list[State] = []
        changed: list[tuple[Definition, State]] = []
        gone: list[State] = []
        replaced: list[int] = []
        for position, state in enumerate(rows):
            room = terms.limit - len(sends)
            if not room:
                batch.more = True  # a batch is bounded in messages too; the other tasks stay due
                break
            definition = found.get(state.task)
            if definition is None:
                gone.append(state)
                continue
            if not plans.same_task(definition, state):
                replaced.append(state.task)
                continue
            recurrence = plans.as_planned(definition, state)
            if recurrence is None or state.due_at is None:
                changed.append((definition, state))
                continue
            # Of what a batch holds, each task that is due has its part: none waits behind another one's long backlog.
            share = min(catchup.SEND_LIMIT, max(1, room // (len(rows) - position)))
            try:
                decision = around.decide(definition, state, recurrence, share)
            except Exception as error:  # a fault of ours or of a library with this one task: the others go on
                logger.exception("deciding task %r (%s)", definition.name, definition.id)
                moved.append(plans.quarantined(state, definition, f"it cannot be decided: {error!r}", state))
                events.quarantined(using, definition.id, definition.name, moved[-1].quarantine)
                continue
            sends += [(definition, state.uid, due_at) for due_at in decision.send]
            skips += [Skipped(definition, state.uid, one, around.detail(definition, one)) for one in decision.skips]
            after = plans.waiting(state, definition, recurrence, decision.due_at, now)
            wake_at, mark = after.wake_at, state.water_mark
            for decided in (*decision.send, *(one.last for one in decision.skips)):
                mark = decided if mark is None or decided > mark else mark
            if decision.send and after.due_at is not None and after.due_at < around.missed_before:
                # What was missed is made up for at a bounded rate. What is only late goes out as fast as it can.
                wake_at = now + len(decision.send) * _PACE
            after = after.moved(after.due_at, wake_at, mark)
            moved.append(after)
            # One task's own limit is a rate: what is over it waits for the next tick. The batch's limit is not.
            cut = share < catchup.SEND_LIMIT and len(decision.send) == share
            batch.more = batch.more or (cut and after.wake_at is not None and after.wake_at <= now)
        plans.forget(using, gone, now)
        occurrences.skip(using, skips, now)
        batch.occurrences = occurrences.claim(
            using, sends, token=batch.token, lease_until=now + terms.lease, beat=terms.beat, now=now
        )
        task_states.write(using, claim_context.holding(moved, batch.occurrences), plan=False)
        if replaced:
            plans.plan(using, replaced, now)
        if changed:
            plans.again(using, changed, plans.noticed(using, [one for one, _ in changed], now), now)
    return batch
