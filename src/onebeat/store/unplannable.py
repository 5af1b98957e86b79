"""Intervals and places of the sun that no rule can be made of: their tasks are quarantined once onebeat plans them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.apps.registry import Apps

from onebeat.core.recurrence import Interval, Solar
from onebeat.store import catalog, vendors

_LABEL = "django_celery_beat"
_TASKS = f"{_LABEL}_periodictask"
#: For each kind: the columns that are its value, and what makes a rule of them. Crontabs are read for themselves.
_KINDS: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "interval": (
        ("every", "period"),
        lambda every, period: Interval.of(every, str(period).strip().lower(), datetime(2000, 1, 1, tzinfo=UTC)),
    ),
    "solar": (("event", "latitude", "longitude"), Solar),
}
#: How many values and tasks are named.
_NAMED = 20


def values(using: str, registry: Apps) -> list[dict[str, Any]]:
    """Each value with the reason and with the enabled tasks on it. `registry` has the models as the tables are."""
    found: list[dict[str, Any]] = []
    for kind, (columns, rule) in _KINDS.items():
        try:
            table = registry.get_model(_LABEL, f"{kind}schedule")._meta.db_table
        except LookupError:
            continue
        if not catalog.exists(using, table):
            continue
        for value in _rows(using, f"SELECT DISTINCT {vendors.quoted(using, *columns)} FROM {table}"):
            try:
                rule(*value)
            except Exception as error:  # whatever a rule makes of values that no rule expects
                shown = " ".join(map(str, value))
                tasks = _tasks(using, kind, table, columns, value)
                found.append({"kind": kind, "value": shown, "why": str(error), "tasks": tasks})
    return found[:_NAMED]


def _tasks(using: str, kind: str, table: str, columns: tuple[str, ...], value: tuple[Any, ...]) -> list[str]:
    same = " AND ".join(f"s.{vendors.quoted(using, name)} = %s" for name in columns)
    sql = (
        f"SELECT t.name FROM {_TASKS} t JOIN {table} s ON s.id = t.{kind}_id "
        f"WHERE t.enabled = %s AND {same} ORDER BY t.name LIMIT {_NAMED}"
    )
    return [name for (name,) in _rows(using, sql, True, *value)]


def _rows(using: str, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with vendors.connection(using).cursor() as cursor:
        cursor.execute(sql, params or None)
        return list(cursor.fetchall())


def lines(found: list[dict[str, Any]]) -> list[str]:
    """The same for people."""
    return [
        f"{one['kind']} ({one['value']}): {one['why']}; "
        + (f"would be quarantined: {', '.join(one['tasks'])}" if one["tasks"] else "no enabled task uses it")
        for one in found
    ]
