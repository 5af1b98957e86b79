"""Tasks that run once under a key, which is the task's name: many callers want one, and one row is made.

A task gets its plan in the same transaction, since its time is known: whoever reschedules or cancels it later holds
that plan, and a scheduler that claims it holds it too, so that one of the two comes first (see
`onebeat.verbs.once_changes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from django.db import OperationalError, connections

from onebeat.core import clock, keys
from onebeat.core.identity import new_task_uid
from onebeat.core.message_request import MessageRequest
from onebeat.core.planning import LATE_COMMITS, State
from onebeat.db import bulk_rows, expressions, reads, upserts
from onebeat.models import ClockedSchedule, PeriodicTask, TaskOptions, change_hints
from onebeat.models.instants import from_utc, to_utc
from onebeat.queries import task_lookup
from onebeat.store import task_states
from onebeat.store.definitions import COPIED

ORIGIN = "once"
#: How often a row may vanish between losing to it and reading it before somebody is told.
TRIES = 20

Asked = Mapping[str, tuple[MessageRequest, datetime]]
Made = dict[str, tuple[PeriodicTask, bool]]
#: By instant: the key of its row, and whether that was inserted here.
Clocks = dict[datetime, tuple[int, bool]]


def glance(using: str, key: str, at: datetime) -> tuple[bool, Clocks]:
    """Whether there may be a task that has a key, and the row of an instant as `clocked` gives it, in one statement."""
    names, link = keys.names([key]) if expressions.folds_texts(using) else [key], connections[using]
    tasks, clocks = (expressions.quoted(using, one._meta.db_table) for one in (PeriodicTask, ClockedSchedule))
    time: Any = ClockedSchedule._meta.get_field("clocked_time")
    with link.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT MIN(id) FROM {tasks} WHERE name IN ({', '.join(['%s'] * len(names))})), "
            f"(SELECT MIN(id) FROM {clocks} WHERE clocked_time = %s)",
            [*names, time.get_db_prep_save(from_utc(at), link)],
        )
        task, row = cursor.fetchone()
    return task is not None, {} if row is None else {at: (row, False)}


def make(using: str, asked: Asked, now: datetime, *, hint: bool) -> Made:
    """The task of each key, and whether it was made here: True for one of any number of callers.

    `asked` gives what each key asks for, and its instant. `hint`: the transaction may end after the plan's time has
    come; a scheduler is to look at the plan when it does. Call it in a transaction. Sends no signal.
    """
    began, seen = clock.monotonic(), None
    done: Made = {}
    if len(asked) > 1:
        done = _there(using, list(asked))
    else:
        ((key, (_, at)),) = asked.items()
        taken, seen = glance(using, key, at)
        if taken:
            done = _there(using, [key])
    names = {key: key for key in asked}
    for _ in range(TRIES):
        absent = {key: asked[key] for key in sorted(asked) if key not in done}
        if not absent:
            return done
        # Everybody takes keys in this order, so that no two wait for each other in a circle.
        lost = _insert(using, absent, names, done, now, hint, began, seen)
        seen = None
        winners = {one.pk: one for one in _keyed(using, [pk for pk in lost.values() if pk is not None])}
        for key, winner in ((key, winners[pk]) for key, pk in lost.items() if pk in winners):
            if keys.has(winner.name, key):
                done[key] = winner, False
            else:  # the database takes another key's name for the same
                names[key] = keys.suffixed(key)
        unnamed = [key for key, pk in lost.items() if pk is None]
        done |= _there(using, unnamed)
    raise OperationalError(f"a task came and went {TRIES} times while it was read: {next(iter(absent))}")


def _insert(
    using: str,
    absent: Asked,
    names: Mapping[str, str],
    done: Made,
    now: datetime,
    hint: bool,
    began: float,
    seen: Clocks | None,
) -> dict[str, Any]:
    """Insert what is not there. What went in is added to `done`; of what did not the winner's key is returned, or None
    where the database does not tell."""
    clocks = clocked(using, {at for _, at in absent.values()}, seen)
    tasks = [new_task(names[key], one, clocks[at][0]) for key, (one, at) in absent.items()]
    columns, values = _insertable(using, tasks, [one for one, _ in absent.values()])
    found = upserts.insert_or_find(using, PeriodicTask._meta.db_table, columns, values, "name", "id")
    lost, made = {}, []
    for key, task in zip(absent, tasks, strict=True):
        pk, new = found.get(task.name, (None, False))
        if new:
            task.pk, task._state.adding, task._state.db = pk, False, using
            made.append(task)
            done[key] = task, True
        else:
            lost[key] = pk
    used = {task.clocked_id for task in made}
    # Nobody can have seen the schedules that this transaction has inserted for tasks that lost.
    spare = [key for key, new in clocks.values() if new and key not in used]
    ClockedSchedule._base_manager.using(using).filter(pk__in=spare)._raw_delete(using)
    _insert_options(using, [(done[key][0].pk, one) for key, (one, _) in absent.items() if key not in lost])
    plans = [_plan(done[key][0], at, now) for key, (_, at) in absent.items() if key not in lost]
    unsure = task_states.insert(using, plans)
    # A plan may come late here as well: it has waited for another transaction to end.
    hint = hint or clock.monotonic() - began > LATE_COMMITS.total_seconds() / 2
    change_hints.changed(using, "task", [task.pk for task in made] if hint else unsure)
    return lost


def _plan(task: PeriodicTask, at: datetime, now: datetime) -> State:
    """The plan that a scheduler would make of a new task: it need not look at it."""
    due_at = to_utc(from_utc(at))  # as the column gives it back
    columns = {"enabled": True, "one_off": True, "clocked": task.clocked_id, "rule": ""}
    copied = {**columns, "clocked_time": from_utc(at), "expires": task.expires}
    return State(
        task=task.pk,
        version=0,
        uid=new_task_uid(),
        task_name=task.name,
        due_at=due_at,
        wake_at=max(due_at, now),
        anchor=now,
        water_mark=None,
        quarantine="",
        definition_since=now,
        open_occurrence=None,
        copied=tuple(copied.get(name) for name in COPIED),
        one_off=True,
        clocked_time=due_at,
    )


def clocked(using: str, instants: Iterable[datetime], seen: Clocks | None = None) -> Clocks:
    """The one row of each instant, inserted if need be: its key, and whether it was inserted here. `seen`: those that
    a look has just found; None: nobody has looked.
    """
    times = {from_utc(at): at for at in sorted(instants)}
    found = _clocked(using, times) if seen is None else seen
    link = connections[using]
    field: Any = ClockedSchedule._meta.get_field("clocked_time")
    table, column = ClockedSchedule._meta.db_table, {field.column: field.db_type(link)}
    for _ in range(TRIES):
        new = {at: field.get_db_prep_save(time, link) for time, at in times.items() if at not in found}
        if not new:
            return found
        # By their one column: making an object of each takes longer than inserting it.
        if len(new) == 1:
            ((at, value),) = new.items()
            row = upserts.insert_one_or_find(using, table, list(column), [value], "id")
            found.update({} if row[0] is None else {at: row})
        else:
            put = upserts.insert_or_find(using, table, column, [[value] for value in new.values()], field.column, "id")
            found.update({at: put[value] for at, value in new.items() if value in put})
        if hidden := {time: at for time, at in times.items() if at not in found}:
            found = {**_clocked(using, hidden), **found}
    raise OperationalError(f"a clocked schedule came and went {TRIES} times while it was read")


def _clocked(using: str, times: Mapping[datetime, datetime]) -> Clocks:
    rows = ClockedSchedule._base_manager.using(using).order_by("-pk").values_list("pk", "clocked_time")
    found: Clocks = {}
    for part in [times] if reads.has_arrays(using) else bulk_rows.portions(times):
        seen = rows.filter(reads.one_of(using, "clocked_time", part))
        found |= {times[time]: (key, False) for key, time in seen}
    return found


def _there(using: str, asked: Sequence[str]) -> Made:
    """The tasks that have these keys, as far as they can be seen."""
    rows: Iterable[PeriodicTask]
    if reads.has_arrays(using):
        rows = task_lookup.tasks(using).filter(reads.one_of(using, "name", asked)) if asked else ()
    else:
        rows = (row for part in bulk_rows.portions(asked) for row in task_lookup.of_keys(using, part))
    return {key: (row, False) for key, row in task_lookup.by_key(rows, asked).items()}


def _keyed(using: str, pks: Sequence[Any]) -> list[PeriodicTask]:
    """Tasks whose keys MySQL has told. Those that a snapshot does not show are read with a lock, one by one: a locking
    read of many may scan, and wait for a row that somebody is inserting who waits for us."""
    found = [one for part in bulk_rows.portions(pks) for one in task_lookup.tasks(using).filter(pk__in=part)]
    hidden = set(pks) - {one.pk for one in found}
    return [*found, *(one for key in hidden for one in task_lookup.tasks(using).select_for_update().filter(pk=key))]


def new_task(name: str, one: MessageRequest, schedule: int | None) -> PeriodicTask:
    """A new task as an object, not saved."""
    like, at, fresh = _template()
    values = list(like)
    given = {"name": name, "task": one.task, "args": one.args, "kwargs": one.kwargs, "clocked_id": schedule}
    for column, value in (*given.items(), *one.columns.items()):
        values[at[column]] = from_utc(value) if column == "expires" and value is not None else value
    for field in fresh:
        values[at[field.attname]] = field.get_default()
    make: Any = PeriodicTask
    new: PeriodicTask = make(*values)  # by position: by name Django takes five times as long
    return new


@cache
def _template() -> tuple[list[Any], dict[str, int], list[Any]]:
    """The values of a new task in the order of its fields, the place of each, and the fields that somebody has added
    whose defaults are made anew for each row."""
    like, fields = PeriodicTask(one_off=True), PeriodicTask._meta.concrete_fields
    fresh = [field for field in fields if field.has_default() and callable(field.default)]
    return [getattr(like, one.attname) for one in fields], {one.attname: n for n, one in enumerate(fields)}, fresh


def _insertable(using: str, tasks: Sequence[PeriodicTask], asked: Sequence[MessageRequest]) -> Any:
    """As `bulk_rows.insertable`, which looks at every column of every row. Follow-ups of one kind differ in these."""
    if any(one.columns != asked[0].columns for one in asked) or _template()[2]:
        return bulk_rows.insertable(using, tasks)
    columns, (like,) = bulk_rows.insertable(using, tasks[:1])
    names = list(columns)
    places = [names.index(name) for name in ("name", "task", "args", "kwargs", "clocked_id")]
    rows = []
    for task in tasks:
        row = list(like)
        for place, value in zip(places, (task.name, task.task, task.args, task.kwargs, task.clocked_id), strict=True):
            row[place] = value
        task.date_changed = tasks[0].date_changed
        rows.append(row)
    return columns, rows


def _insert_options(using: str, made: Sequence[tuple[int, MessageRequest]]) -> None:
    same: dict[tuple[str, str, str], list[Any]] = {}
    found = []
    for task, one in made:
        key = one.tags, one.extra, one.link
        if key not in same:  # thousands of tasks are made alike
            row = TaskOptions(task_id=task, origin=ORIGIN, tags=one.tags, extra=one.extra, link=one.link)
            columns, (same[key],) = bulk_rows.insertable(using, [row])
            number = list(columns).index("task_id")
        values = list(same[key])
        values[number] = task
        found.append(values)
    if found:
        upserts.insert_or_lose(using, TaskOptions._meta.db_table, columns, found, ["task_id"])
