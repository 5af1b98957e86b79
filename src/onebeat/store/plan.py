"""Plan: hints and sweep results become `due_at` and `wake_at`, from the task's current definition.

An edit re-bases: the first match after the change. A save that changes neither the schedule nor `enabled` moves
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import models

from onebeat.core import plan as rules
from onebeat.core.catchup import Skip, wait
from onebeat.core.recurrence import Recurrence
from onebeat.models import Change, PeriodicTask, PeriodicTasks
from onebeat.models.instants import from_utc, to_utc
from onebeat.store import definitions, hints, ledger, states, vendors
from onebeat.store.definitions import BadDefinition, Definition
from onebeat.store.states import State

logger = logging.getLogger("onebeat")

_ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Since:
    """When a task is said to have changed: the first and the last time, by the database's clock."""

    first: datetime
    last: datetime


def consume(using: str, limit: int) -> int:
    """Plan the tasks that up to `limit` hints name, and delete those hints. Returns how many hints were seen."""
    with vendors.short_transaction(using):
        rows = list(
            Change.objects.using(using)
            .select_for_update(skip_locked=True)
            .order_by("pk")
            .values_list("pk", "kind", "ref", "at")[:limit]
        )
        if not rows:
            return 0
        done = []
        since: dict[int, Since] = {}
        for pk, kind, ref, at in rows:
            if kind == Change.Kind.TASK:
                since[ref] = (
                    Since(min(at, since[ref].first), max(at, since[ref].last)) if ref in since else Since(at, at)
                )
            else:
                _spread(using, kind, ref, at)
                done.append(pk)
        held = plan(using, since, vendors.now(using))
        done += [pk for pk, kind, ref, _ in rows if kind == Change.Kind.TASK and ref not in held]
        Change.objects.using(using).filter(pk__in=done).delete()
    return len(rows)


def _spread(using: str, kind: str, schedule: int, at: datetime) -> None:
    """Turn the hint that a schedule changed into one for each task that uses it, to be planned in portions."""
    rows = PeriodicTask._base_manager.using(using).filter(**{f"{kind}_id": schedule})
    hints.changed_where(using, Change.Kind.TASK, rows, at=at)


def plan(using: str, since: Mapping[int, Since], now: datetime) -> set[int]:
    """Bring the plans of these tasks up to their definitions. Call it inside a short transaction.

    Returns the tasks whose state somebody else holds at this moment: they are to be planned at the next turn.
    """
    ids = sorted(since)
    mine = states.lock(using, ids)
    held = states.existing(using, ids) - mine.keys()
    # Read after the lock: a definition read before it could be older than the state it is compared with.
    found = definitions.fetch(using, [task for task in ids if task not in held])
    gone, new, changed, dropped = [], [], [], []
    for task in ids:
        if task in held:
            continue
        definition, state = found.get(task), mine.get(task)
        if definition is None:
            gone.append(task)
        elif state is None:
            new.append(planned(definition, None, since[task], now))
        else:
            after = planned(definition, state, since[task], now)
            if after != state:
                changed.append(after)
            if state.due_at and state.due_at <= now and after.due_at != state.due_at:
                reason = (after.quarantine and "quarantined") or ("edited" if definition.enabled else "disabled")
                dropped.append(ledger.Skipped(definition, Skip(state.due_at, now, reason), after.quarantine))
    states.delete(using, gone)
    states.insert(using, new)
    states.write(using, changed, plan=True)
    ledger.skip(using, dropped, now)
    return held


def planned(definition: Definition, state: State | None, since: Since, now: datetime) -> State:
    """The state that a task's definition asks for; `state` is what was planned so far (None: the task is new here)."""
    last_run = None if definition.last_run_at is None else to_utc(definition.last_run_at)
    anchor = state.anchor if state else last_run or since.first
    after = State(
        task=definition.id,
        version=state.version if state else 0,
        due_at=None,
        wake_at=None,
        anchor=anchor,
        water_mark=state.water_mark if state else None,
        quarantine="",
        copied=definition.copied(),
    )
    if not definition.enabled:
        return after
    try:
        recurrence = definition.check(anchor)
    except BadDefinition as bad:
        return quarantined(after, definition, str(bad), state)
    if state and not state.quarantine and state.copied == after.copied:
        after = waiting(after, definition, recurrence, state.due_at, now)
        overdue = state.wake_at and state.wake_at <= now and after.wake_at == now
        return replace(after, wake_at=state.wake_at) if overdue else after
    due_at = _first(definition, recurrence, state, since, last_run)
    return waiting(after, definition, recurrence, due_at, now)


def _first(
    definition: Definition,
    recurrence: Recurrence,
    state: State | None,
    since: Since,
    last_run: datetime | None,
) -> datetime | None:
    """The first nominal time of a task that is new here or whose schedule changed."""
    if state is None:
        if definition.one_off and definition.total_run_count > 0:
            return None  # taken over after it ran: it stays finished
        reference = last_run or (_ALWAYS if definition.clocked is not None else since.first)
    elif definition.clocked is not None and (state.quarantine or not _same_clock(definition, state)):
        # One instant that somebody has just named is theirs to run, even if it has passed by the time it is read.
        reference = state.water_mark or _ALWAYS
    else:
        reference = max(since.last, state.water_mark) if state.water_mark else since.last
    return rules.first(recurrence, reference, start_time=definition.starts(), expires=definition.ends())


def _same_clock(definition: Definition, state: State) -> bool:
    return bool(state.copied[definitions.COPIED.index("clocked_time")] == definition.clocked_time)


def waiting(
    state: State, definition: Definition, recurrence: Recurrence, due_at: datetime | None, now: datetime
) -> State:
    """`state`, waiting for `due_at`. What is late already may leave now; no wake time lies far in the past, so that the
    claim need not look there."""
    if due_at is None:
        return replace(state, due_at=None, wake_at=None)
    wake_at = due_at + wait(recurrence, due_at, definition.policy, str(definition.id))
    return replace(state, due_at=due_at, wake_at=max(wake_at, now))


def quarantined(state: State, definition: Definition, reason: str, before: State | None) -> State:
    """`state`, set aside with its reason, which is logged when it is new."""
    if before is None or before.quarantine != reason:
        logger.error("task %r (%s) is quarantined: %s", definition.name, definition.id, reason)
    return replace(state, due_at=None, wake_at=None, quarantine=reason)


def touch(using: str) -> None:
    """Move the old `PeriodicTasks.last_update` for those who read it: outside any user's transaction."""
    now = from_utc(vendors.now(using))
    rows: models.QuerySet[PeriodicTasks] = PeriodicTasks._base_manager.using(using)
    if not rows.filter(pk=1).update(last_update=now):
        vendors.insert_or_lose(
            using,
            PeriodicTasks._meta.db_table,
            ["ident", "last_update"],
            [
                [
                    1,
                    PeriodicTasks._meta.get_field("last_update").get_db_prep_save(now, vendors.connection(using)),
                ]
            ],
            ["ident"],
        )
