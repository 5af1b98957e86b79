"""Keep the plans of tasks up to their definitions: what hints and the sweep say becomes `due_at` and `wake_at`.

`onebeat.core.planning` has the rules; here they are read for and written.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import connections, models

from onebeat.core import nominal_times, planning
from onebeat.core.catchup import Skip
from onebeat.core.planning import Changed, State
from onebeat.core.reasons import Reason
from onebeat.db import database_clock, transactions, upserts
from onebeat.errors import UnknownTask
from onebeat.models import Change, PeriodicTask, PeriodicTasks, change_hints
from onebeat.models.instants import from_utc
from onebeat.store import definitions, events, occurrences, task_states
from onebeat.store.definitions import Definition

logger = logging.getLogger("onebeat")


def consume(using: str, limit: int) -> int:
    """Plan the tasks that up to `limit` hints name, and delete those hints. Returns how many are done.

    The hint that a schedule changed becomes hints for its tasks, which the next call reads. Hints whose tasks another
    transaction holds stay, and do not keep those behind them from being read.
    """
    after: int | None = 0
    while after is not None:
        done, after = _consume(using, limit, after)
        if done:
            return done
    return 0


def _consume(using: str, limit: int, after: int) -> tuple[int, int | None]:
    """Returns how many hints behind the key `after` are done, and where to go on (None at the end)."""
    with transactions.short_transaction(using):
        rows = list(
            Change.objects.using(using)
            .select_for_update(skip_locked=True)
            .filter(pk__gt=after)
            .order_by("pk")
            .values_list("pk", "kind", "ref", "at", "left_disabled")[:limit]
        )
        if not rows:
            return 0, None
        done = []
        changed_at: dict[int, Changed] = {}
        for pk, kind, ref, at, left_disabled in rows:
            if kind == Change.Kind.TASK:
                changed_at[ref] = Changed(at, at, left_disabled).joined(changed_at.get(ref))
            else:
                _spread(using, kind, ref, at)
                done.append(pk)
        locked_elsewhere = plan(using, changed_at, database_clock.now(using), changed_at)
        done += [pk for pk, kind, ref, *_ in rows if kind == Change.Kind.TASK and ref not in locked_elsewhere]
        Change.objects.using(using).filter(pk__in=done).delete()
    return len(done), rows[-1][0] if len(rows) == limit else None


def _spread(using: str, kind: str, schedule: int, at: datetime) -> None:
    """Turn the hint that a schedule changed into one for each task that uses it, to be planned in portions."""
    rows = PeriodicTask._base_manager.using(using).filter(**{f"{kind}_id": schedule})
    change_hints.changed_where(using, Change.Kind.TASK, rows, at=at)


def plan(using: str, tasks: Iterable[int], now: datetime, changed_at: Mapping[int, Changed] | None = None) -> set[int]:
    """Bring the plans of these tasks up to their definitions. Call it inside a short transaction.

    `changed_at`: when they changed; None: as hints say that are still waiting, else now. Returns the tasks whose state
    somebody else holds at this moment: they are to be planned the next time.
    """
    ids = sorted(tasks)
    mine = task_states.lock(using, ids)
    locked_elsewhere = task_states.existing(using, ids) - mine.keys()
    # Read after the lock: a definition read before it could be older than the state it is compared with.
    found = definitions.fetch(using, [task for task in ids if task not in locked_elsewhere])
    gone = [state for task, state in mine.items() if task not in found or not planning.same_task(found[task], state)]
    forget(using, gone, now)
    mine = {task: state for task, state in mine.items() if state not in gone}
    # One that was disabled and is enabled: the hint of that may not have been among those that were read.
    unsure = [
        one for task, one in found.items() if changed_at is None or (changed_at[task].left_disabled and one.enabled)
    ]
    changed_at = {**(changed_at or {}), **changes(using, unsure, now)}
    replaced = {state.task for state in gone}
    new = [
        planning.planned(one, None, changed_at[task], now, replaces=task in replaced)
        for task, one in found.items()
        if task not in mine
    ]
    task_states.insert(using, new)
    for one in new:
        _emit(using, found[one.task], one, "")
    again(using, [(found[task], state) for task, state in mine.items() if task in found], changed_at, now)
    return locked_elsewhere


def forget(using: str, gone: Iterable[State], now: datetime) -> None:
    """Drop the plans of tasks that do not exist any more, and record what was due of them. The states are locked."""
    gone = list(gone)
    due = [state for state in gone if state.due_at is not None and state.due_at <= now]
    skips = []
    for state in due:
        assert state.due_at is not None
        # Whatever else it named until now: the rule has gone with it.
        last_due_at = state.due_at if state.one_off else now
        task = definitions.gone(state.task, state.task_name)
        skips.append(
            occurrences.Skipped(task, state.uid, Skip(state.due_at, last_due_at, Reason.CANCELLED), "the task is gone")
        )
    occurrences.skip(using, skips, now)
    task_states.delete(using, [state.task for state in gone])


def again(
    using: str, tasks: Sequence[tuple[Definition, State]], changed_at: Mapping[int, Changed], now: datetime
) -> None:
    """Plan tasks anew whose states are locked. What was due before the change and is not any more is recorded."""
    changed, dropped = [], []
    for definition, state in tasks:
        after = planning.planned(definition, state, changed_at[state.task], now)
        if after != state:
            changed.append(after)
            _emit(using, definition, after, state.quarantine)
        last = changed_at[state.task].enabled_again or changed_at[state.task].last
        # A time after the change belongs to the new definition alone: a record of it would stand in that one's way.
        if state.due_at and state.due_at <= last and after.due_at != state.due_at:
            off = not definition.enabled or changed_at[state.task].enabled_again
            reason = Reason.QUARANTINED if after.quarantine else Reason.DISABLED if off else Reason.EDITED
            last_due_at = state.due_at if state.one_off else last
            dropped.append(
                occurrences.Skipped(definition, state.uid, Skip(state.due_at, last_due_at, reason), after.quarantine)
            )
        if state.quarantine and not after.quarantine and definition.enabled:
            dropped += _slept(using, definition, state, after, last)
    task_states.write(using, changed, plan=True)
    occurrences.skip(using, dropped, now)


def _emit(using: str, definition: Definition, after: State, before: str) -> None:
    """Log a quarantine and emit its signal, if it is new or has another reason."""
    if after.quarantine and after.quarantine != before:
        logger.error("task %r (%s) is quarantined: %s", definition.name, definition.id, after.quarantine)
        events.quarantined(using, definition.id, definition.name, after.quarantine)


def _slept(
    using: str, definition: Definition, before: State, after: State, until: datetime
) -> list[occurrences.Skipped]:
    """The nominal times that passed while a task was quarantined and are not planned now, as one range."""
    recurrence = definition.check(after.anchor)
    known = [before.anchor, before.water_mark, occurrences.newest(using, before.uid)]
    first = nominal_times.first(
        recurrence,
        max(instant for instant in known if instant is not None),
        start_time=definition.starts(),
        expires=definition.ends(),
    )
    if first is None or first > until or (after.due_at is not None and first >= after.due_at):
        return []
    last = nominal_times.newest(recurrence, first, until)[0]
    return [occurrences.Skipped(definition, before.uid, Skip(first, last, Reason.QUARANTINED), before.quarantine)]


def changes(using: str, found: Iterable[Definition], now: datetime) -> dict[int, Changed]:
    """When these tasks changed, as far as hints that nobody has read yet know; those without one changed now.

    A change is often seen in the data before its hint is read. Planned from the later instant, a nominal time between
    the two would be lost.
    """
    users: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        users[Change.Kind.TASK][one.id].append(one.id)
        for kind in ("interval", "crontab", "solar", "clocked"):
            if (schedule := getattr(one, kind)) is not None:
                users[kind][schedule].append(one.id)
    if not users:
        return {}
    named = models.Q()
    for kind, refs in users.items():
        named |= models.Q(kind=kind, ref__in=list(refs))
    changed_at: dict[int, Changed] = {}
    hinted = Change.objects.using(using).filter(named).order_by("pk")
    for kind, ref, at, left_disabled in hinted.values_list("kind", "ref", "at", "left_disabled"):
        for task in users[kind][ref]:
            changed_at[task] = Changed(at, at, left_disabled).joined(changed_at.get(task))
    for one in found:
        known = changed_at.get(one.id)
        if known and known.left_disabled and known.enabled_again is None and one.enabled:
            changed_at[one.id] = replace(known, enabled_again=now)  # enabled again past the ORM
    return {task: changed_at.get(task, Changed(now, now, hinted=False)) for task in users[Change.Kind.TASK]}


def uid(using: str, task: int, name: str, now: datetime) -> int:
    """The uid of a task, which is planned first if it is not yet. Call it in a transaction.

    Raises `UnknownTask`, with this name, if the task is gone.
    """
    state, definition = task_states.read(using, [task]).get(task), definitions.fetch(using, [task]).get(task)
    if definition is not None and (state is None or not planning.same_task(definition, state)):
        plan(using, [task], now)
        state = task_states.current(using, task)
    if definition is None or state is None:
        raise UnknownTask(name, [])
    return state.uid


def touch(using: str) -> None:
    """Move the old `PeriodicTasks.last_update` for those who read it: outside any user's transaction."""
    now = from_utc(database_clock.now(using))
    rows: models.QuerySet[PeriodicTasks] = PeriodicTasks._base_manager.using(using).filter(pk=1)
    with transactions.short_transaction(using):
        # Somebody's open transaction may hold the row: then they move it, and nobody waits.
        if rows.select_for_update(skip_locked=True).values_list("pk").first():
            rows.update(last_update=now)
        elif not rows.exists():
            field = PeriodicTasks._meta.get_field("last_update")
            row = [1, field.get_db_prep_save(now, connections[using])]
            upserts.insert_or_lose(using, PeriodicTasks._meta.db_table, ["ident", "last_update"], [row], ["ident"])
