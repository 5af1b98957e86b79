"""One row for each value, however many workers want it at once: the database decides, nobody gets an error for losing.

Inside a caller's transaction the database's own retryable errors reach the caller, since only they can run it again:
PostgreSQL under REPEATABLE READ or SERIALIZABLE raises SQLSTATE 40001 when the row was committed after the
transaction's snapshot, and any database may name a deadlock. Outside a transaction they are retried here.

This module knows no model: models stand on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db import OperationalError, models, transaction

from onebeat.store import vendors

M = TypeVar("M", bound=models.Model)

#: How often a row may vanish between losing to it and reading it before somebody is told.
_TRIES = 20
#: How many values are looked up in one statement.
_PORTION = 200


def find(using: str, instance: models.Model, value: Sequence[str]) -> Any:
    """The primary key of the row that holds the instance's value in the columns `value`; None if there is none to be
    seen.

    Where old duplicates are not merged yet, the oldest.
    """
    rows = type(instance)._base_manager.using(using).filter(**{name: getattr(instance, name) for name in value})
    return rows.order_by("pk").values_list("pk", flat=True).first()


def insert_or_adopt(using: str, instance: models.Model, value: Sequence[str]) -> bool:
    """Give a new instance the primary key of the one row that holds its value, which is inserted if need be.

    Returns whether this call inserted it: True for exactly one of any number of callers. Sends no signal.
    """
    key, created = vendors.retrying(using, lambda: _insert_or_find(using, instance, value))
    adopt(using, instance, key)
    return created


def adopt(using: str, instance: models.Model, key: Any) -> None:
    """Make an instance stand for the row with this primary key."""
    instance.pk = key
    instance._state.adding = False
    instance._state.db = using


def _insert_or_find(using: str, instance: models.Model, value: Sequence[str]) -> tuple[Any, bool]:
    link = vendors.connection(using)
    # In a deferred transaction of SQLite a read before the write fails the upgrade of the lock at once ("database is
    # locked") when another connection has written meanwhile; a write waits for its turn.
    if not (link.vendor == "sqlite" and link.in_atomic_block):
        key = find(using, instance, value)
        if key is not None:
            return key, False
    table, pk, columns, row = _insertable(using, instance)
    unique = _columns(instance, value)
    for _ in range(_TRIES):
        key, created = vendors.insert_one_or_find(using, table, columns, row, unique, pk)
        if key is None:
            key = find(using, instance, value)
        if key is not None:
            return key, created
    raise OperationalError(f"{table}: a row with this value came and went {_TRIES} times while it was read")


def _columns(instance: models.Model, names: Sequence[str]) -> list[str]:
    fields: list[Any] = [instance._meta.get_field(name) for name in names]
    return [field.column for field in fields]


def _insertable(using: str, instance: models.Model) -> tuple[str, str, list[str], list[Any]]:
    """Table, primary key column, columns and values to insert; brings the instance's values to canonical form."""
    link, meta = vendors.connection(using), instance._meta
    pk: Any = meta.pk
    fields: list[Any] = [field for field in meta.local_concrete_fields if not field.primary_key]
    row = [field.get_db_prep_save(field.pre_save(instance, True), link) for field in fields]
    return meta.db_table, pk.column, [field.column for field in fields], row


def insert_or_adopt_many(using: str, instances: Iterable[models.Model], value: Sequence[str]) -> None:
    """The same for many new instances of one model, in few statements. Keys are taken in sorted order by everybody, so
    that two transactions never wait for each other in a circle."""
    by_row: dict[tuple[Any, ...], list[models.Model]] = {}
    table = ""
    columns: list[str] = []
    for instance in instances:
        table, _, columns, values = _insertable(using, instance)
        by_row.setdefault(tuple(values), []).append(instance)
    rows = sorted(by_row, key=lambda row: tuple(map(str, row)))
    if not rows:
        return
    unique = _columns(by_row[rows[0]][0], value)

    def work() -> dict[tuple[Any, ...], Any]:
        with transaction.atomic(using=using, savepoint=False):
            vendors.insert_or_lose(using, table, columns, rows, unique)
            return _keys(using, [by_row[row][0] for row in rows], value)

    keys = vendors.retrying(using, work)
    for row in rows:
        for instance in by_row[row]:
            adopt(using, instance, keys[_comparable(instance, value)])


def _keys(using: str, instances: Sequence[models.Model], value: Sequence[str]) -> dict[tuple[Any, ...], Any]:
    """The primary keys of the rows that hold these values."""
    keys: dict[tuple[Any, ...], Any] = {}
    for start in range(0, len(instances), _PORTION):
        part = instances[start : start + _PORTION]
        wanted = reduce(or_, (models.Q(**{name: getattr(one, name) for name in value}) for one in part))
        rows = type(part[0])._base_manager.using(using).filter(wanted)
        if vendors.connection(using).vendor == "mysql":
            # Under REPEATABLE READ only a locking read sees what was committed after the transaction's snapshot.
            rows = rows.select_for_update()
        for row in rows.order_by("-pk"):
            keys[_comparable(row, value)] = row.pk
    return keys


def _comparable(instance: models.Model, value: Sequence[str]) -> tuple[Any, ...]:
    return tuple(str(instance._meta.get_field(name).to_python(getattr(instance, name))) for name in value)  # type: ignore[union-attr]
