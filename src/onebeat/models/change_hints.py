"""Hints that something changed: written in the user's transaction, never updated, read by the engine alone.

Nothing here waits for anybody: two open transactions insert two rows.

Before our tables are there the scheduler at work is django-celery-beat's. It looks at one row, which is moved for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.apps import apps
from django.core.exceptions import EmptyResultSet
from django.db import connections, models

from onebeat.db import database_clock, expressions, schema, upserts, utc_columns

TABLE = "onebeat_change"


def changed(using: str, kind: str, refs: Iterable[Any], *, left_disabled: bool = False) -> None:
    """Say that the rows of `kind` with these primary keys changed, at the database's present instant.

    `left_disabled`: the change leaves these tasks disabled.
    """
    keys = sorted({key for key in refs if key is not None})
    if keys and not schema.there(using, TABLE):
        _tell_the_old_beat(using)
        return
    now, params = database_clock.clock_sql(using)
    alike = {"kind": ("%s", [kind]), "at": (now, params), "left_disabled": (_truth(left_disabled), [])}
    upserts.insert_for_keys(using, TABLE, "ref", keys, alike)


def changed_where(
    using: str, kind: str, rows: models.QuerySet[Any, Any], at: datetime | None = None, *, left_disabled: bool = False
) -> None:
    """Say that every row of a queryset changed, without bringing its keys here; `at` defaults to the present
    instant.
    """
    if not schema.there(using, TABLE):
        _tell_the_old_beat(using)
        return
    now, params = database_clock.clock_sql(using)
    if at is not None:
        now, params = "%s", utc_columns.to_columns(using, [at])
    try:
        sql, where = rows.order_by().values_list("pk").query.get_compiler(using).as_sql()
    except EmptyResultSet:  # `none()`, or a filter that Django knows to match nothing
        return
    disabled = _truth(left_disabled)
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {expressions.quoted(using, TABLE)} ({_columns(using)}) "
            f"SELECT %s, changed.*, {now}, {disabled} FROM ({sql}) AS changed",
            [kind, *params, *where],
        )


def _columns(using: str) -> str:
    return expressions.quoted(using, "kind", "ref", "at", "left_disabled")


def _truth(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def newest(using: str) -> datetime | None:
    """When the newest change was made that a hint still tells of; None where none does, or before `migrate`."""
    if not schema.there(using, TABLE):
        return None
    at, key = expressions.quoted(using, "at"), expressions.quoted(using, "id")
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {at} FROM {expressions.quoted(using, TABLE)} ORDER BY {key} DESC LIMIT 1")
        row = cursor.fetchone()
    return utc_columns.from_column(row[0]) if row else None


def deleted(using: str) -> None:
    """Say that rows were deleted, for those who look at `PeriodicTasks.last_change`. No task has the key 0."""
    changed(using, "task", [0])


def _tell_the_old_beat(using: str) -> None:
    tasks: Any = apps.get_model(schema.LABEL, "PeriodicTasks")
    tasks.update_changed(using=using)
