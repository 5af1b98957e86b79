"""`TaskState` rows as the engine reads and writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connections
from django.db.models import F, QuerySet

from onebeat.core.planning import State
from onebeat.db import transactions, upserts, utc_columns
from onebeat.db.index_hints import along_index
from onebeat.db.reads import among, array, plain, prepared
from onebeat.models import TaskState
from onebeat.models.instants import to_utc
from onebeat.store.definitions import COPIED

TABLE = "onebeat_taskstate"
_IDENTITY = ("uid", "task_name")
_OWN = ("due_at", "wake_at", "anchor", "water_mark", "quarantine", "definition_since", "open_occurrence")
_ONE_OFF, _CLOCKED_TIME = COPIED.index("one_off"), COPIED.index("clocked_time")
#: Of these, what moving on to the next time leaves alone.
_KEPT = ("anchor", "definition_since")
_FIELDS = ("task_id", "version", *_IDENTITY, *_OWN, *COPIED)
#: PostgreSQL types for a list of values; elsewhere columns take what they are given.
_TYPES = {
    **dict.fromkeys(("due_at", "wake_at", "anchor", "water_mark", "definition_since"), "timestamp"),
    "open_occurrence": "bigint",
    "quarantine": "text",
    **dict.fromkeys(("task_id", "version", "uid"), "bigint"),
    "task_name": "text",
    **dict.fromkeys(("enabled", "one_off"), "boolean"),
    **dict.fromkeys(("interval", "crontab", "solar", "clocked"), "integer"),
    "rule": "text",
    **dict.fromkeys(("clocked_time", "start_time", "expires"), "timestamptz"),
}


def _read(using: str, rows: QuerySet[TaskState]) -> list[State]:
    return [_state(row) for row in plain(using, rows.values_list(*_FIELDS))]


def _state(row: Sequence[Any]) -> State:
    task, version, uid, name, due_at, wake_at, anchor, mark, quarantine, since, running, *copied = row
    utc: Any = utc_columns.from_column
    own = utc(due_at), utc(wake_at), utc(anchor), utc(mark), quarantine, utc(since), running
    one_off, time = copied[_ONE_OFF], copied[_CLOCKED_TIME]
    return State(task, version, uid, name, *own, tuple(copied), one_off, None if time is None else to_utc(time))


def _by_task(using: str, rows: QuerySet[TaskState]) -> dict[int, State]:
    return {one.task: one for one in _read(using, rows)}


def lock(using: str, ids: Iterable[int]) -> dict[int, State]:
    """The states of these tasks, locked until the transaction ends; those that somebody else holds are left out."""
    rows = TaskState.objects.using(using).select_for_update(skip_locked=True).filter(among(using, "pk", ids))
    return _by_task(using, rows.order_by("pk"))


def lock_finished(using: str, ids: Iterable[int]) -> dict[int, State]:
    """As `lock`, and only one-offs that have nothing left to send."""
    keys = list(ids)

    def rows() -> QuerySet[Any, Any]:
        found = TaskState.objects.using(using).select_for_update(skip_locked=True).filter(among(using, "pk", keys))
        done = found.filter(one_off=True, due_at=None, quarantine="", water_mark__isnull=False)
        return done.order_by("pk").values_list(*_FIELDS)

    read = map(_state, prepared(using, "finished", [array(keys), ""], rows))
    return {one.task: one for one in read}


def hold(using: str, ids: Iterable[int]) -> dict[int, State]:
    """As `lock`, and waits for a scheduler that is claiming one of them. While they are held no scheduler decides about
    these tasks: it leaves them out and comes back.
    """
    # Only rows that are there: on MySQL a lock on one that is not closes the gap to every scheduler that adds a plan.
    there = sorted(existing(using, ids))
    rows = TaskState.objects.using(using).select_for_update().filter(pk__in=there)
    return _by_task(using, rows.order_by("pk"))


def lock_due(using: str, floor: datetime | None, now: datetime, limit: int) -> list[State]:
    """The tasks whose wake time has come, oldest first, locked; those that another scheduler is claiming are left out.

    `floor`: look at wake times from here on only. Index entries left behind by earlier moves would otherwise be walked
    over each time while one long transaction keeps them alive.
    """

    def rows() -> QuerySet[Any, Any]:
        due = TaskState.objects.using(using).select_for_update(skip_locked=True).filter(wake_at__lte=now)
        if floor is not None:
            due = due.filter(wake_at__gte=floor)
        # MySQL likes to sort a small table instead, and then locks all of it: the limit comes too late, and every
        # other scheduler finds nothing left to claim.
        return along_index(using, due.order_by("wake_at")[:limit], "onebeat_taskstate_wake").values_list(*_FIELDS)

    values = utc_columns.to_columns(using, [each for each in (now, floor) if each is not None])
    return [_state(row) for row in prepared(using, f"due {limit} {floor is None}", values, rows)]


def existing(using: str, ids: Iterable[int]) -> set[int]:
    """Which of these tasks have a state."""
    return set(TaskState.objects.using(using).filter(among(using, "pk", ids)).values_list("pk", flat=True))


def delete(using: str, ids: Iterable[int]) -> None:
    """Forget the plans of tasks that are gone."""
    TaskState.objects.using(using).filter(pk__in=list(ids)).delete()


def insert(using: str, states: Sequence[State]) -> list[int]:
    """Add states; one that another scheduler has just added, or that an earlier task has left behind, wins.

    Returns the tasks whose state may not be the given one. MySQL says of all together whether they went in.
    """
    names = ["task_id", "version", *_IDENTITY, *_OWN, *COPIED]
    rows = [[one.task, one.version, one.uid, one.task_name, *_values(using, one)] for one in states]
    types = {name: _TYPES[name] for name in names}
    put = upserts.insert_or_lose(using, TABLE, types, rows, ["task_id"], returning=["task_id"])
    known = {task for (task,) in put or ()}
    return [one.task for one in states if one.task not in known]


def write(using: str, states: Sequence[State], *, plan: bool) -> None:
    """Write states back, each only if its version is still the one that was read.

    `plan`: also the anchor and the copied definition, which moving on does not change.
    """
    own = ["task_name", *_OWN] if plan else [name for name in _OWN if name not in _KEPT]
    columns = {name: _TYPES[name] for name in (*own, *(COPIED if plan else ()))}
    if plan:
        rows = [[state.task, state.version, state.task_name, *_values(using, state)] for state in states]
    else:
        moving = attrgetter("task", "version", *own)
        rows = utc_columns.to_rows(using, map(moving, states))
    upserts.update_rows(using, TABLE, ("task_id", "version"), columns, rows, grows="version")


def disable(using: str, tasks: Collection[int]) -> None:
    """Note that these tasks were disabled, and nothing else about them. Their states are locked."""
    rows = TaskState.objects.using(using).filter(among(using, "pk", tasks), enabled=True)
    rows.update(enabled=False, version=F("version") + 1)


def _values(using: str, state: State) -> list[object]:
    """The state's own values and its copies, as the database takes them: people's columns know local times."""
    link = connections[using]
    copied = [
        value if value is None or isinstance(value, int | str) else field.get_db_prep_save(value, link)
        for field, value in zip(_copied_fields(), state.copied, strict=True)
    ]
    return [*utc_columns.to_columns(using, [getattr(state, name) for name in _OWN]), *copied]


@cache
def _copied_fields() -> list[Any]:
    return [TaskState._meta.get_field(name) for name in COPIED]


def read(using: str, ids: Iterable[int]) -> dict[int, State]:
    """The states of these tasks as committed, without a lock."""
    rows = TaskState.objects.using(using).filter(among(using, "pk", ids))
    return _by_task(using, rows)


def current(using: str, task: int) -> State | None:
    """The state of one task as it is now, also where the caller's snapshot is older; None if it has none."""
    found = read(using, [task]).get(task)
    if found is None and transactions.snapshot_may_hide_rows(using):
        rows = TaskState.objects.using(using).select_for_update().filter(pk=task)
        found = _by_task(using, rows).get(task)
    return found
