"""Claim: take due tasks in one short transaction, write their occurrences, move `due_at` on.

Recover: take occurrences whose scheduler was lost, decide them again, and publish them under the same id.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import F
from django.db.models.functions import Least

from onebeat.core import catchup
from onebeat.models import Occurrence
from onebeat.store import byhand, definitions, ledger, news, plan, policies, states, vendors
from onebeat.store.batches import among
from onebeat.store.definitions import BadDefinition, Definition
from onebeat.store.ledger import Claimed, Skipped
from onebeat.store.states import State

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
    with vendors.short_transaction(using):
        now = vendors.now(using)
        batch = Batch(secrets.randbits(62), now)
        rows = states.lock_due(using, floor, now, terms.limit)
        batch.more = len(rows) == terms.limit
        if not rows:
            return batch
        batch.oldest = rows[0].wake_at
        found = definitions.fetch(using, [state.task for state in rows])
        around = policies.surroundings(using, rows, found, now, terms.missed_before(now))
        sends: list[tuple[Definition, datetime]] = []
        skips: list[Skipped] = []
        moved: list[State] = []
        changed: list[tuple[Definition, State]] = []
        gone: list[State] = []
        for position, state in enumerate(rows):
            room = terms.limit - len(sends)
            if not room:
                batch.more = True  # a batch is bounded in messages too; the other tasks stay due
                break
            definition = found.get(state.task)
            if definition is None:
                gone.append(state)
                continue
            recurrence = plan.as_planned(definition, state)
            if recurrence is None or state.due_at is None:
                changed.append((definition, state))
                continue
            # Of what a batch holds, each task that is due has its part: none waits behind another one's long backlog.
            share = min(catchup.SEND_LIMIT, max(1, room // (len(rows) - position)))
            try:
                decision = around.decide(definition, state, recurrence, share)
            except Exception as error:  # a fault of ours or of a library with this one task: the others go on
                logger.exception("deciding task %r (%s)", definition.name, definition.id)
                moved.append(plan.quarantined(state, definition, f"it cannot be decided: {error!r}", state))
                news.quarantined(using, definition.id, definition.name, moved[-1].quarantine)
                continue
            sends += [(definition, due_at) for due_at in decision.send]
            skips += [Skipped(definition, one, around.detail(definition, one)) for one in decision.skips]
            after = plan.waiting(state, definition, recurrence, decision.due_at, now)
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
        plan.forget(using, gone, now)
        ledger.skip(using, skips, now)
        batch.occurrences = ledger.claim(
            using, sends, token=batch.token, lease_until=now + terms.lease, beat=terms.beat, now=now
        )
        states.write(using, policies.holding(moved, batch.occurrences), plan=False)
        if changed:
            plan.again(using, changed, plan.noticed(using, [one for one, _ in changed], now), now)
    return batch


def lost(using: str, terms: Terms) -> Batch:
    """Claim occurrences past their lease. Each is decided again first: what happened meanwhile may have settled it."""
    with vendors.short_transaction(using):
        now = vendors.now(using)
        batch = Batch(secrets.randbits(62), now)
        rows = list(
            Occurrence.objects.using(using)
            .select_for_update(skip_locked=True)
            .filter(lease_until__lte=now, state=Occurrence.State.CLAIMED)
            .order_by("lease_until")[: terms.limit]
        )
        batch.more = len(rows) == terms.limit
        if not rows:
            return batch
        tasks = {row.task_id for row in rows}
        found, planned = definitions.fetch(using, tasks), states.read(using, tasks)
        around = policies.surroundings(using, planned.values(), found, now, terms.missed_before(now))
        keep: list[int] = []
        for row in rows:
            definition = found.get(row.task_id)
            verdict = (
                byhand.verdict(definition) if row.run else _settled(definition, planned.get(row.task_id), row, around)
            )
            if verdict or definition is None:
                _skip(using, row, *(verdict or ("cancelled", "the task is gone")))
                continue
            keep.append(row.pk)
            batch.occurrences.append(
                Claimed(row.pk, definition, row.due_at, row.run, row.celery_task_id, row.claims + 1)
            )
        batch.occurrences.sort(key=lambda one: (one.due_at, one.id))
        Occurrence.objects.using(using).filter(among(using, "pk", keep)).update(
            claim=batch.token,
            lease_until=now + terms.lease,
            claims=Least(F("claims"), _MANY) + 1,
            beat=terms.beat,
        )
    return batch


def _settled(
    definition: Definition | None, state: State | None, row: Occurrence, around: policies.Surroundings
) -> tuple[str, str] | None:
    """Why a lost occurrence is not sent any more, as (reason, detail); None: it is sent."""
    if definition is None:
        return "cancelled", "the task is gone"
    if not definition.enabled:
        return "disabled", ""
    try:
        recurrence = definition.check(state.anchor if state else row.due_at)
    except BadDefinition as bad:
        return "quarantined", str(bad)
    reason = catchup.superseded(
        recurrence,
        row.due_at,
        around.now,
        around.policy(definition),
        missed_before=around.missed_before,
        expires=definition.ends(),
        one_off=definition.one_off,
    )
    # The later ones have waited for the run that was open: it is the one that is sent.
    awaited = definition.policy.overlap == "skip" and state is not None and state.running == row.pk
    if reason == catchup.COALESCED and (awaited or not _followed(state, row.due_at, around.now)):
        reason = None
    if reason is None and state is not None and state.running != row.pk:
        running = around.running(definition, state)
        if running is not None and running.due_at > row.due_at:
            return catchup.OVERLAP, f"with {running.due_at.isoformat()}"
    if reason == catchup.PAUSED:
        return reason, around.paused(definition)
    return (reason, "decided again after its scheduler was lost") if reason else None


def _followed(state: State | None, due_at: datetime, now: datetime) -> bool:
    """Whether a later time of this task has had its turn or has it now. After an edit the new rule alone does not
    tell."""
    if state is None:
        return False
    return bool((state.water_mark and state.water_mark > due_at) or (state.due_at and state.due_at <= now))


def _skip(using: str, row: Occurrence, reason: str, detail: str) -> None:
    Occurrence.objects.using(using).filter(pk=row.pk).update(
        state=Occurrence.State.SKIPPED, reason=reason, detail=detail, claim=None, lease_until=None
    )
    news.skipped(using, row.task_id, row.task_name, row.due_at, reason, detail, run=row.run)
