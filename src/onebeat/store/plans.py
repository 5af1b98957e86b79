"""Plan: hints and sweep results become `due_at` and `wake_at`, from the task's current definition.

An edit re-bases: the first match after the change. A save that changes neither the schedule nor `enabled` moves
nothing.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import connections, models

from onebeat.core import nominal_times as rules
from onebeat.core.catchup import Skip, wait
from onebeat.core.identity import new_task_uid
from onebeat.core.recurrence import Recurrence
from onebeat.db import database_clock, transactions, upserts
from onebeat.errors import Unschedulable
from onebeat.models import Change, PeriodicTask, PeriodicTasks, change_hints
from onebeat.models.instants import from_their_run, from_utc, to_utc
from onebeat.store import definitions, events, occurrences, task_states
from onebeat.store.definitions import COPIED, Definition
from onebeat.store.task_states import State

logger = logging.getLogger("onebeat")

_ALWAYS = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Since:
    """When a task is said to have changed: the first and the last time, by the database's clock."""

    first: datetime
    last: datetime
    #: Some change left the task disabled.
    left_disabled: bool = False
    #: The first change after the last one that left it disabled: where a task that is enabled now begins anew.
    back: datetime | None = None
    #: Whether a hint said so; else it is when somebody looked.
    told: bool = True

    def joined(self, other: Since | None) -> Since:
        """This and what came before it."""
        if other is None:
            return self
        back = None if self.left_disabled else other.back or (self.first if other.left_disabled else None)
        return Since(
            min(self.first, other.first), max(self.last, other.last), self.left_disabled or other.left_disabled, back
        )


def consume(using: str, limit: int) -> int:
    """Plan the tasks that up to `limit` hints name, and delete those hints. Returns how many are done.

    The hint that a schedule changed becomes hints for its tasks, which the next call reads.
    """
    with transactions.short_transaction(using):
        rows = list(
            Change.objects.using(using)
            .select_for_update(skip_locked=True)
            .order_by("pk")
            .values_list("pk", "kind", "ref", "at", "left_disabled")[:limit]
        )
        if not rows:
            return 0
        done = []
        since: dict[int, Since] = {}
        for pk, kind, ref, at, left_disabled in rows:
            if kind == Change.Kind.TASK:
                since[ref] = Since(at, at, left_disabled).joined(since.get(ref))
            else:
                _spread(using, kind, ref, at)
                done.append(pk)
        held = plan(using, since, database_clock.now(using), since)
        done += [pk for pk, kind, ref, *_ in rows if kind == Change.Kind.TASK and ref not in held]
        Change.objects.using(using).filter(pk__in=done).delete()
    return len(done)


def _spread(using: str, kind: str, schedule: int, at: datetime) -> None:
    """Turn the hint that a schedule changed into one for each task that uses it, to be planned in portions."""
    rows = PeriodicTask._base_manager.using(using).filter(**{f"{kind}_id": schedule})
    change_hints.changed_where(using, Change.Kind.TASK, rows, at=at)


def plan(using: str, tasks: Iterable[int], now: datetime, since: Mapping[int, Since] | None = None) -> set[int]:
    """Bring the plans of these tasks up to their definitions. Call it inside a short transaction.

    `since`: when they changed; None: as hints say that are still waiting, else now. Returns the tasks whose state
    somebody else holds at this moment: they are to be planned at the next turn.
    """
    ids = sorted(tasks)
    mine = task_states.lock(using, ids)
    held = task_states.existing(using, ids) - mine.keys()
    # Read after the lock: a definition read before it could be older than the state it is compared with.
    found = definitions.fetch(using, [task for task in ids if task not in held])
    gone = [state for task, state in mine.items() if task not in found or not same_task(found[task], state)]
    forget(using, gone, now)
    mine = {task: state for task, state in mine.items() if state not in gone}
    # One that was disabled and is enabled: the hint of that may not have been among those that were read.
    unsure = [one for task, one in found.items() if since is None or (since[task].left_disabled and one.enabled)]
    since = {**(since or {}), **noticed(using, unsure, now)}
    replaced = {state.task for state in gone}
    new = [
        planned(one, None, since[task], now, replaces=task in replaced)
        for task, one in found.items()
        if task not in mine
    ]
    task_states.insert(using, new)
    for one in new:
        _tell(using, found[one.task], one, "")
    again(using, [(found[task], state) for task, state in mine.items() if task in found], since, now)
    return held


def same_task(definition: Definition, state: State) -> bool:
    """Whether the row with the key of a plan is still the task that was planned: a task may be renamed, and its
    definition may be edited, but what has both another name and another definition is another task under a key that
    was given out again.
    """
    return definition.name == state.task_name or definition.copied() == state.copied


def forget(using: str, gone: Iterable[State], now: datetime) -> None:
    """Drop the plans of tasks that do not exist any more, and record what was due of them. The states are locked."""
    gone = list(gone)
    due = [state for state in gone if state.due_at is not None and state.due_at <= now]
    skips = []
    for state in due:
        assert state.due_at is not None
        # Whatever else it named until now: the rule has gone with it.
        last_due_at = state.due_at if state.copied[COPIED.index("one_off")] else now
        task = definitions.gone(state.task, state.task_name)
        skips.append(
            occurrences.Skipped(task, state.uid, Skip(state.due_at, last_due_at, "cancelled"), "the task is gone")
        )
    occurrences.skip(using, skips, now)
    task_states.delete(using, [state.task for state in gone])


def again(using: str, tasks: Sequence[tuple[Definition, State]], since: Mapping[int, Since], now: datetime) -> None:
    """Plan tasks anew whose states are locked. What was due before the change and is not any more is recorded."""
    changed, dropped = [], []
    for definition, state in tasks:
        after = planned(definition, state, since[state.task], now)
        if after != state:
            changed.append(after)
            _tell(using, definition, after, state.quarantine)
        last = since[state.task].back or since[state.task].last
        # A time after the change belongs to the new definition alone: a record of it would stand in that one's way.
        if state.due_at and state.due_at <= last and after.due_at != state.due_at:
            off = not definition.enabled or since[state.task].back
            reason = (after.quarantine and "quarantined") or ("disabled" if off else "edited")
            last_due_at = state.due_at if state.copied[COPIED.index("one_off")] else last
            dropped.append(
                occurrences.Skipped(definition, state.uid, Skip(state.due_at, last_due_at, reason), after.quarantine)
            )
        if state.quarantine and not after.quarantine and definition.enabled:
            dropped += _slept(using, definition, state, after, last)
    task_states.write(using, changed, plan=True)
    occurrences.skip(using, dropped, now)


def _tell(using: str, definition: Definition, after: State, before: str) -> None:
    if after.quarantine and after.quarantine != before:
        events.quarantined(using, definition.id, definition.name, after.quarantine)


def _slept(
    using: str, definition: Definition, before: State, after: State, until: datetime
) -> list[occurrences.Skipped]:
    """The nominal times that passed while a task was quarantined and are not planned now, as one range."""
    recurrence = definition.check(after.anchor)
    known = [before.anchor, before.water_mark, occurrences.newest(using, before.uid)]
    first = rules.first(
        recurrence,
        max(instant for instant in known if instant is not None),
        start_time=definition.starts(),
        expires=definition.ends(),
    )
    if first is None or first > until or (after.due_at is not None and first >= after.due_at):
        return []
    last = rules.newest(recurrence, first, until)[0]
    return [occurrences.Skipped(definition, before.uid, Skip(first, last, "quarantined"), before.quarantine)]


def noticed(using: str, found: Iterable[Definition], now: datetime) -> dict[int, Since]:
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
    wanted = models.Q()
    for kind, refs in users.items():
        wanted |= models.Q(kind=kind, ref__in=list(refs))
    since: dict[int, Since] = {}
    hinted = Change.objects.using(using).filter(wanted).order_by("pk")
    for kind, ref, at, left_disabled in hinted.values_list("kind", "ref", "at", "left_disabled"):
        for task in users[kind][ref]:
            since[task] = Since(at, at, left_disabled).joined(since.get(task))
    for one in found:
        known = since.get(one.id)
        if known and known.left_disabled and known.back is None and one.enabled:
            since[one.id] = replace(known, back=now)  # enabled again past the ORM
    return {task: since.get(task, Since(now, now, told=False)) for task in users[Change.Kind.TASK]}


def planned(
    definition: Definition, state: State | None, since: Since, now: datetime, *, replaces: bool = False
) -> State:
    """The state that a task's definition asks for; `state` is what was planned so far (None: the task is new here).

    `replaces`: it is new under the key of another task that is gone. Nothing fires for its past, whatever the row says
    of its last run: a person may also have given one task another name and another schedule at once.
    """
    # A task that is new here has its last run from django-celery-beat.
    last_run = definition.last_run_at and (to_utc if state else from_their_run)(definition.last_run_at)
    if replaces:
        last_run = None
    elif state is None and not since.told and definition.date_changed:
        # It stood there before anybody looked. One that never ran waits since its last edit, as in the old beat.
        since = replace(since, first=min(since.first, to_utc(definition.date_changed)))
    anchor = state.anchor if state else last_run or since.first
    after = State(
        task=definition.id,
        version=state.version if state else 0,
        uid=state.uid if state else new_task_uid(),
        task_name=definition.name,
        due_at=None,
        wake_at=None,
        anchor=anchor,
        water_mark=state.water_mark if state else None,
        quarantine="",
        definition_since=since.first if state is None else since.last,
        open_occurrence=state.open_occurrence if state else None,
        copied=definition.copied(),
    )
    if state is not None and state.copied == after.copied and not since.back:
        after = replace(after, definition_since=state.definition_since)
    if not definition.enabled:
        return after
    try:
        recurrence = definition.check(anchor)
        if state and not state.quarantine and state.copied == after.copied and not since.back:
            after = waiting(after, definition, recurrence, state.due_at, now)
            overdue = state.wake_at and state.wake_at <= now and after.wake_at == now
            return replace(after, wake_at=state.wake_at) if overdue else after
        due_at = _first(definition, recurrence, state, since, last_run)
        return waiting(after, definition, recurrence, due_at, now)
    except Unschedulable as bad:
        return quarantined(after, definition, str(bad), state)
    except Exception as error:  # a fault of ours or of a library with this one row: the others go on
        logger.exception("planning task %r (%s)", definition.name, definition.id)
        return quarantined(after, definition, f"it cannot be planned: {error!r}", state)


def uid(using: str, task: int, now: datetime) -> int:
    """The uid of a task that is there, which is planned first if it is not yet. Call it in a transaction."""
    state, definition = task_states.read(using, [task]).get(task), definitions.fetch(using, [task])[task]
    if state is None or not same_task(definition, state):
        plan(using, [task], now)
        state = task_states.read(using, [task])[task]
    return state.uid


def as_planned(definition: Definition, state: State) -> Recurrence | None:
    """The recurrence of a task that is still what its plan was made from; None: it has to be planned first."""
    if definition.copied() != state.copied:
        return None
    try:
        return definition.check(state.anchor)
    except Unschedulable:
        return None


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
        reference = last_run or (_ALWAYS if definition.clocked is not None else since.back or since.first)
    elif definition.clocked_time is not None and (state.quarantine or not _same_clock(definition, state)):
        # One instant that somebody has just named is theirs to run, even if it has passed by the time it is read: their
        # clock may be behind. Unless it is the one that ran last.
        ran = state.water_mark == to_utc(definition.clocked_time)
        reference = since.last if ran else _ALWAYS
    else:
        reference = since.back or since.last
        reference = max(reference, state.water_mark) if state.water_mark else reference
    return rules.first(recurrence, reference, start_time=definition.starts(), expires=definition.ends())


def _same_clock(definition: Definition, state: State) -> bool:
    return bool(state.copied[definitions.COPIED.index("clocked_time")] == definition.clocked_time)


def waiting(
    state: State, definition: Definition, recurrence: Recurrence, due_at: datetime | None, now: datetime
) -> State:
    """`state`, waiting for `due_at`. What is late already may leave now; no wake time lies far in the past, so that the
    claim need not look there."""
    if due_at is None:
        return state.moved(None, None, state.water_mark)
    try:
        wake_at = due_at + wait(recurrence, due_at, definition.policy, str(definition.id))
    except OverflowError:  # the last day of the calendar, as people write "never"
        wake_at = due_at
    return state.moved(due_at, max(wake_at, now), state.water_mark)


def quarantined(state: State, definition: Definition, reason: str, before: State | None) -> State:
    """`state`, set aside with its reason, which is logged when it is new."""
    if before is None or before.quarantine != reason:
        logger.error("task %r (%s) is quarantined: %s", definition.name, definition.id, reason)
    return replace(state, due_at=None, wake_at=None, quarantine=reason)


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
