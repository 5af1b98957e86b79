"""One row for each value, however many workers want it at once: the database decides, nobody gets an error for losing.

Inside a caller's transaction the database's own retryable errors reach the caller, since only they can run it again:
PostgreSQL under REPEATABLE READ or SERIALIZABLE raises SQLSTATE 40001 when the row was committed after the
transaction's snapshot, and any database may name a deadlock. Outside a transaction they are retried here.

Before our constraints are there, nothing here fails: the row that is seen is adopted, and a race makes two, as it
always did.

This module knows no model: models stand on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db import OperationalError, connections, models, transaction
from django.utils import timezone

from onebeat.db import transactions, upserts

#: How often a row may vanish between losing to it and reading it before somebody is told.
_TRIES = 20
#: How many values are looked up in one statement.
_PORTION = 200

Key = tuple[Any, ...]


def find(using: str, instance: models.Model, value: Sequence[str]) -> object:
    """The primary key of the row that holds the instance's value in the columns `value`; None if there is none to be
    seen.

    Where old duplicates are not merged yet, the oldest.
    """
    rows = type(instance)._base_manager.using(using).filter(**{name: getattr(instance, name) for name in value})
    return rows.order_by("pk").values_list("pk", flat=True).first()


def look(using: str, instance: models.Model, value: Sequence[str]) -> object:
    """As `find`; None as well where looking may not come before the write that follows."""
    return (
        transactions.retrying(using, lambda: find(using, instance, value))
        if transactions.may_read_first(using)
        else None
    )


def insert_or_adopt(using: str, instance: models.Model, value: Sequence[str]) -> bool:
    """Give a new instance the primary key of the one row that holds its value, which is inserted if need be.

    Returns whether this call inserted it: True for exactly one of any number of callers. Sends no signal.
    """
    key, created = transactions.retrying(using, lambda: _insert_or_find(using, instance, value))
    adopt(using, instance, key)
    return created


def adopt(using: str, instance: models.Model, key: object) -> None:
    """Make an instance stand for the row with this primary key."""
    instance.pk = key
    instance._state.adding = False
    instance._state.db = using


def _insert_or_find(using: str, instance: models.Model, value: Sequence[str]) -> tuple[object, bool]:
    meta = instance._meta
    pk: Any = meta.pk
    columns, row = _row(using, instance)
    for _ in range(_TRIES):
        key, created = upserts.insert_one_or_find(using, meta.db_table, columns, row, pk.column)
        if key is None:
            key = find(using, instance, value)
        if key is not None:
            return key, created
    raise OperationalError(f"{meta.db_table}: a row with this value came and went {_TRIES} times while it was read")


def _columns(instance: models.Model, names: Sequence[str]) -> list[str]:
    fields: list[Any] = [instance._meta.get_field(name) for name in names]
    return [field.column for field in fields]


def _row(using: str, instance: models.Model) -> tuple[list[str], list[object]]:
    """Columns and values to insert; brings the instance's values to canonical form."""
    link = connections[using]
    fields: list[Any] = [field for field in instance._meta.local_concrete_fields if not field.primary_key]
    row = [field.get_db_prep_save(field.pre_save(instance, True), link) for field in fields]
    return [field.column for field in fields], row


def insert_or_adopt_many(using: str, instances: Iterable[models.Model], value: Sequence[str]) -> None:
    """The same for many new instances of one model, in few statements. Keys are taken in sorted order by everybody, so
    that two transactions never wait for each other in a circle."""
    same: dict[Key, list[models.Model]] = {}
    for instance in instances:
        same.setdefault(_key(using, instance, value), []).append(instance)
    ones = {key: same[key][0] for key in sorted(same)}
    found = transactions.retrying(using, lambda: _insert_or_find_many(using, ones, value))
    for key, equals in same.items():
        for instance in equals:
            adopt(using, instance, found[key])


def _insert_or_find_many(using: str, ones: Mapping[Key, models.Model], value: Sequence[str]) -> dict[Key, object]:
    # What is there already needs no write, and a row that is not written is not locked.
    found = _seen(using, list(ones.values()), value) if transactions.may_read_first(using) else {}
    absent = {key: one for key, one in ones.items() if key not in found}
    if not absent:
        return found
    with transaction.atomic(using=using, savepoint=False):
        first = next(iter(absent.values()))
        columns, _ = _row(using, first)
        rows = [_row(using, one)[1] for one in absent.values()]
        upserts.insert_or_lose(using, first._meta.db_table, columns, rows, _columns(first, value), named=False)
        found |= _seen(using, list(absent.values()), value)
        for key, one in absent.items():
            if key not in found:  # deleted since, or MySQL's snapshot is older than the winner
                found[key], _ = _insert_or_find(using, one, value)
    return found


def _seen(using: str, instances: Sequence[models.Model], value: Sequence[str]) -> dict[Key, object]:
    """The primary keys of the rows that hold these values, of those that are to be seen."""
    keys: dict[Key, object] = {}
    for start in range(0, len(instances), _PORTION):
        part = instances[start : start + _PORTION]
        matches = reduce(or_, (models.Q(**{name: getattr(one, name) for name in value}) for one in part))
        for row in type(part[0])._base_manager.using(using).filter(matches).order_by("-pk"):
            keys[_key(using, row, value)] = row.pk
    return keys


def _key(using: str, instance: models.Model, value: Sequence[str]) -> Key:
    """The value as the column holds it, so that it is the same, and sorts the same, however it is spelt."""
    link = connections[using]
    fields: list[Any] = [instance._meta.get_field(name) for name in value]
    return tuple(_utc(field.get_db_prep_save(field.pre_save(instance, False), link)) for field in fields)


def _utc(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    if timezone.is_naive(value):
        value = timezone.make_aware(value, timezone.get_default_timezone())
    return value.astimezone(UTC)
