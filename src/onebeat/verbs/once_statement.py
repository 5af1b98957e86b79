"""A follow-up in one statement, where one statement may insert into several tables: PostgreSQL.

It looks for the key, finds or inserts the instant, inserts the task, its options, its plan and, where a scheduler is to
look at that plan, a hint. Each part reads what the one before it gives, so they run in this order, and whoever does not
get the key inserts nothing more. An answer without a task says that another transaction has just inserted the key or
the instant: the same text once more sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.db import DataError, OperationalError, connections, models

from onebeat.core.identity import new_task_uid
from onebeat.core.message_request import MessageRequest
from onebeat.db import database_clock, utc_columns
from onebeat.db.expressions import quoted
from onebeat.models import Change, ClockedSchedule, PeriodicTask, TaskOptions, TaskState
from onebeat.verbs import once_rows

#: What PostgreSQL's log says of a statement that is taken back, so that it leaves no instant that nobody uses.
_TAKEN_BACK = "onebeat.once has lost this key to another call and asks again: "
#: Columns of the task that no call gives, and those that each call gives.
_TASK = {"clocked_id": "k.id", "date_changed": "w.n AT TIME ZONE 'UTC'", "one_off": "TRUE"}
_EACH = ("name", "task", "args", "kwargs")
#: Columns of the options that a call may give, with what they are when it does not.
_OPTIONS = {"tags": "", "extra": "{}", "link": ""}
#: The plan that a scheduler would make of a new task, but for `wake_at` and `expires`.
_PLAN = {
    "task_id": "p.id", "version": "0", "uid": "%(uid)s", "task_name": "%(name)s", "due_at": "w.t", "anchor": "w.n",
    "water_mark": "NULL", "quarantine": "''", "definition_since": "w.n", "open_occurrence": "NULL", "enabled": "TRUE",
    "one_off": "TRUE", "interval": "NULL", "crontab": "NULL", "solar": "NULL", "clocked": "p.clocked_id", "rule": "''",
    "clocked_time": "w.t AT TIME ZONE 'UTC'", "start_time": "NULL",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is under the key now: the task if it was made here, else the primary key of the one that is there."""

    pk: int
    task: PeriodicTask | None
    #: The instant that was asked for, and the present one.
    at: datetime
    now: datetime


class _Shape(NamedTuple):
    """What calls have in common for which the text is the same."""

    using: str
    now: str
    columns: tuple[str, ...]
    options: tuple[str, ...]
    relative: bool
    #: Whether it is a transaction of the caller's.
    joins: bool


def possible(using: str, one: MessageRequest) -> bool:
    """Whether one statement can do it. Without USE_TZ the column of an instant has another meaning than the instant,
    and only with both instants at hand can the end of a task be compared with its time.
    """
    unsure = isinstance(one.at, timedelta) and "expires" in one.columns
    return connections[using].vendor == "postgresql" and settings.USE_TZ and not unsure


def make(using: str, one: MessageRequest, *, joins: bool) -> Answer:
    """Make the task unless its key is taken. `joins`: in a transaction of the caller's, which may end after the plan's
    time has come; a scheduler is to look at the plan when it does. Sends no signal.
    """
    link, (now, given) = connections[using], database_clock.clock_sql(using)
    options = {name: value for name, unsaid in _OPTIONS.items() if (value := getattr(one, name)) != unsaid}
    relative = isinstance(one.at, timedelta)
    sql, asked = _text(_Shape(using, now, tuple(one.columns), tuple(options), relative, joins))
    task = once_rows.new_task(one.key, one, None)
    params: dict[str, Any] = {**options, "uid": new_task_uid(), "now": given[0] if given else None}
    for field in asked:
        params[field.column] = field.get_db_prep_save(field.pre_save(task, True), link)
    params["at"] = one.at if isinstance(one.at, timedelta) else utc_columns.to_column(link.vendor, one.at)
    for _ in range(once_rows.TRIES):
        try:
            with link.cursor() as cursor:
                cursor.execute(sql, params)
                seen, at, found, made, clocked, new = cursor.fetchone()
        except DataError as error:
            if _TAKEN_BACK not in str(error):
                raise
            continue
        at, seen = at.replace(tzinfo=UTC), seen.replace(tzinfo=UTC)
        if found is not None:
            return Answer(found, None, at, seen)
        if made is not None:
            task.pk, task.clocked_id, task.date_changed = made, clocked, seen
            task._state.adding, task._state.db = False, using
            return Answer(made, task, at, seen)
        if new is not None:  # nobody can have seen it
            ClockedSchedule._base_manager.using(using).filter(pk=new)._raw_delete(using)
    raise OperationalError(f"a task came and went {once_rows.TRIES} times while it was read: {one.key}")


@cache
def _text(shape: _Shape) -> tuple[str, tuple[Any, ...]]:
    """The statement, and the fields of the task whose values differ between calls.

    Below 4,096 characters and 50 parameters psycopg splits a text once and not for each call.
    """
    using, now = shape.using, "%(now)s::timestamp" if shape.now == "%s" else shape.now
    tasks, clocks = (quoted(using, model._meta.db_table) for model in (PeriodicTask, ClockedSchedule))
    hints, hint = quoted(using, Change._meta.db_table), quoted(using, "kind", "ref", "at", "left_disabled")
    columns, fields = _task(shape)
    # Its time may have come by now, if another transaction had to end before: the clock is asked once more.
    plan = {**_PLAN, "wake_at": f"GREATEST(w.t, {now})", "expires": columns["expires"]}
    lose = "ON CONFLICT DO NOTHING"
    parts = {
        "w": f"SELECT n, {'n + %(at)s' if shape.relative else '%(at)s::timestamp'} AS t FROM (SELECT {now} AS n) v",
        "h": f"SELECT id FROM {tasks} WHERE name = %(name)s",
        "c": f"SELECT id FROM {clocks} WHERE clocked_time = (SELECT t AT TIME ZONE 'UTC' FROM w) ORDER BY id LIMIT 1",
        "i": f"INSERT INTO {clocks} (clocked_time) SELECT t AT TIME ZONE 'UTC' FROM w "
        f"WHERE NOT EXISTS (SELECT FROM h) AND NOT EXISTS (SELECT FROM c) {lose} RETURNING id",
        "p": f"{_insert(using, PeriodicTask, columns)} FROM w, (SELECT id FROM c UNION ALL SELECT id FROM i) k "
        f"WHERE NOT EXISTS (SELECT FROM h) {lose} RETURNING id, clocked_id",
        "o": f"{_insert(using, TaskOptions, _options(shape))} FROM p {lose}",
        "s": f"{_insert(using, TaskState, plan)} FROM p, w {lose} RETURNING 1",
        "g": f"INSERT INTO {hints} ({hint}) SELECT 'task', p.id, {now}, FALSE FROM p"
        + ("" if shape.joins else " WHERE NOT EXISTS (SELECT FROM s)"),  # a state that was left behind
    }
    new = "(SELECT id FROM i)"
    if not shape.joins:  # with a value of the row, or PostgreSQL reads the text as a number before it runs anything
        lost = "p.id IS NULL AND EXISTS (SELECT FROM i)"
        new = f"CASE WHEN {lost} THEN ('{_TAKEN_BACK}' || %(name)s || w.n)::integer END"
    answer = f"n, t, (SELECT id FROM h), p.id, p.clocked_id, {new}"
    named = ", ".join(f"{name} AS ({part})" for name, part in parts.items())
    return f"WITH {named} SELECT {answer} FROM w LEFT JOIN p ON TRUE", fields


def _task(shape: _Shape) -> tuple[dict[str, str], tuple[Any, ...]]:
    """The columns of the task, each with its value as SQL, and the fields whose values are parameters."""
    row = once_rows.new_task("", MessageRequest("", timedelta(), "", "", "", dict.fromkeys(shape.columns)), None)
    columns: dict[str, str] = {}
    fields: list[Any] = []
    known: Any = PeriodicTask._meta.local_concrete_fields
    for field in known:
        given = field.name in _EACH or field.name in shape.columns
        value = _TASK.get(field.column) or (None if given else _literal(shape.using, field, row))
        if not field.primary_key:
            columns[field.column] = value or f"%({field.column})s"
            fields += [] if value else [field]
    return columns, tuple(fields)


def _options(shape: _Shape) -> dict[str, str]:
    row, columns = TaskOptions(origin=once_rows.ORIGIN), {"task_id": "p.id"}
    known: Any = TaskOptions._meta.local_concrete_fields
    for field in known:
        if not field.primary_key:
            given = field.name in shape.options
            columns[field.column] = f"%({field.name})s" if given else _literal(shape.using, field, row) or "NULL"
    return columns


def _insert(using: str, model: type[models.Model], columns: Mapping[str, str]) -> str:
    table, names = quoted(using, model._meta.db_table), quoted(using, *columns)
    return f"INSERT INTO {table} ({names}) SELECT {', '.join(columns.values())}"


def _literal(using: str, field: Any, row: models.Model) -> str | None:
    """What a column is in every row, as SQL; None: it may differ, or is no plain value."""
    if field.has_default() and callable(field.default):
        return None
    value = field.get_db_prep_save(field.pre_save(row, True), connections[using])
    if value is None or isinstance(value, bool | int):
        return "NULL" if value is None else str(value).upper()
    return "'" + value.replace("'", "''").replace("%", "%%") + "'" if isinstance(value, str) else None
