"""Recovery: occurrences whose scheduler was lost are claimed again, decided again, and published under the same id."""

from __future__ import annotations

from datetime import datetime

from onebeat.core import catchup, planning
from onebeat.core.claiming import ClaimContext
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.db import database_clock, transactions, upserts
from onebeat.errors import Unschedulable
from onebeat.models import Occurrence
from onebeat.store import batches, claim_context, definitions, events, manual_runs, task_states
from onebeat.store.claims import Batch, Terms
from onebeat.store.definitions import Definition
from onebeat.store.occurrences import TABLE, Claimed
from onebeat.store.settling import MANY

#: What changes when an occurrence is claimed again, with the PostgreSQL types.
_TAKEN = {"claim_token": "bigint", "claims": "smallint", "beat_id": "bigint"}


def reclaim(using: str, terms: Terms) -> Batch:
    """Claim what is open of batches past their lease. Each occurrence is decided again first: what happened meanwhile
    may have settled it.
    """
    with transactions.short_transaction(using):
        now = database_clock.now(using)
        batch = Batch(batches.new_token(now), now)
        lost = batches.lock_lost(using, now, terms.limit)
        if not lost:
            return batch
        open_ones = batches.open_ones(using, lost).select_for_update(skip_locked=True)
        rows = list(open_ones.order_by("claim_token", "pk")[: terms.limit])
        batch.more = terms.limit in (len(lost), len(rows))
        tasks = {row.task_id for row in rows}
        found, planned = definitions.fetch(using, tasks), task_states.read(using, tasks)
        context = claim_context.read(using, planned.values(), found, now, terms.missed_before(now))
        for row in rows:
            definition, state = found.get(row.task_id), planned.get(row.task_id)
            if definition is not None and not _same_task(row, definition, state):
                definition = None
            verdict = manual_runs.refusal(definition) if row.run else _settled(definition, state, row, context)
            if verdict or definition is None:
                _skip(using, row, *(verdict or (Reason.CANCELLED, "the task that it was claimed for is gone")))
                continue
            returned = lost[row.claim_token] is None
            claims = max(1, row.claims) if returned else min(row.claims, MANY) + 1
            batch.occurrences.append(
                Claimed(
                    row.pk,
                    definition,
                    row.task_uid,
                    row.due_at,
                    row.run,
                    row.celery_task_id,
                    claims,
                    row.publish_failures,
                )
            )
        batch.occurrences.sort(key=lambda one: (one.due_at, one.id))
        taken = [(one.id, batch.token, one.claims, terms.beat) for one in batch.occurrences]
        upserts.update_rows(using, TABLE, ["id"], _TAKEN, taken)
        if taken:
            batches.add(using, batch.token, terms.beat, now + terms.lease)
        batches.close(using, lost)  # but for what a worker or a settling scheduler has locked just now
    return batch


def _same_task(row: Occurrence, definition: Definition, state: State | None) -> bool:
    """Whether the task under the occurrence's key is still the one that it was claimed for. A message is sent as no
    other.
    """
    if state is None:
        return definition.name == row.task_name
    return state.uid == row.task_uid and planning.same_task(definition, state)


def _settled(
    definition: Definition | None, state: State | None, row: Occurrence, context: ClaimContext
) -> tuple[Reason, str] | None:
    """Why a lost occurrence is not sent any more, as (reason, detail); None: it is sent."""
    if definition is None:
        return Reason.CANCELLED, "the task that it was claimed for is gone"
    if not definition.enabled:
        return Reason.DISABLED, ""
    try:
        recurrence = definition.check(state.anchor if state else row.due_at)
    except Unschedulable as bad:
        return Reason.QUARANTINED, str(bad)
    reason = catchup.superseded(
        recurrence,
        row.due_at,
        context.now,
        context.policy(definition),
        missed_before=context.missed_before,
        expires=definition.ends(),
        one_off=definition.one_off,
    )
    # The later ones have waited for the run that was open: it is the one that is sent.
    awaited = definition.policy.overlap == "skip" and state is not None and state.open_occurrence == row.pk
    if reason == Reason.COALESCED and (awaited or not _followed(state, row.due_at, context.now)):
        reason = None
    if reason is None and state is not None and state.open_occurrence != row.pk:
        running = context.running(definition, state)
        if running is not None and running.due_at > row.due_at:
            return Reason.OVERLAP, f"with {running.due_at.isoformat()}"
    if reason == Reason.PAUSED:
        return reason, context.pause_words(definition)
    return (reason, "decided again after its scheduler was lost") if reason else None


def _followed(state: State | None, due_at: datetime, now: datetime) -> bool:
    """Whether a later time of this task has had its turn or has it now. After an edit the new rule alone does not
    tell."""
    if state is None:
        return False
    return bool((state.water_mark and state.water_mark > due_at) or (state.due_at and state.due_at <= now))


def _skip(using: str, row: Occurrence, reason: Reason, detail: str) -> None:
    Occurrence.objects.using(using).filter(pk=row.pk).update(
        state=Occurrence.State.SKIPPED, reason=reason, detail=detail
    )
    events.skipped(using, row.task_id, row.task_name, row.due_at, reason, detail, run=row.run)
