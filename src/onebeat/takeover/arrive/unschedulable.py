"""Intervals and places of the sun that no rule can be made of: their tasks are quarantined once onebeat plans them."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.apps.registry import Apps
from django.db import connections

from onebeat.core.recurrence import rule_of
from onebeat.db import catalog, expressions
from onebeat.errors import InvalidSchedule

_LABEL = "django_celery_beat"
_TASKS = f"{_LABEL}_periodictask"
#: For each kind the columns that are its value. Crontabs are read in `celery_readings`.
_KINDS = {"interval": ("every", "period"), "solar": ("event", "latitude", "longitude")}
#: How many values of a kind are named, and tasks of a value.
_NAMED = 20


def values(using: str, registry: Apps) -> list[dict[str, object]]:
    """Each value with the reason and the enabled tasks on it, some of each kind.

    `registry` has the models as the tables are.
    """
    found: list[dict[str, object]] = []
    for kind, columns in _KINDS.items():
        try:
            table = registry.get_model(_LABEL, f"{kind}schedule")._meta.db_table
        except LookupError:
            continue
        if not catalog.exists(using, table):
            continue
        wrong = ((value, _wrong(kind, value)) for value in _values(using, table, columns))
        for value, why in islice(((value, why) for value, why in wrong if why), _NAMED):
            tasks = _tasks(using, kind, table, columns, value)
            found.append({"kind": kind, "value": " ".join(map(str, value)), "why": why, "tasks": tasks})
    return found


def _wrong(kind: str, value: tuple[object, ...]) -> str:
    """Why no rule can be made of these columns; empty where one can be."""
    if kind == "interval":
        value = (value[0], str(value[1]).strip().lower())
    try:
        rule_of(kind, value)
    except InvalidSchedule as error:
        return str(error)
    return ""


def _values(using: str, table: str, columns: tuple[str, ...]) -> list[tuple[object, ...]]:
    return _rows(using, f"SELECT DISTINCT {expressions.quoted(using, *columns)} FROM {table}")


def _tasks(using: str, kind: str, table: str, columns: tuple[str, ...], value: tuple[object, ...]) -> list[str]:
    same = " AND ".join(f"s.{expressions.quoted(using, name)} = %s" for name in columns)
    sql = (
        f"SELECT t.name FROM {_TASKS} t JOIN {table} s ON s.id = t.{kind}_id "
        f"WHERE t.enabled = %s AND {same} ORDER BY t.name LIMIT {_NAMED}"
    )
    return [name for (name,) in _rows(using, sql, True, *value)]


def _rows(using: str, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params or None)
        return list(cursor.fetchall())
