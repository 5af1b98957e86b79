"""The schedule tables of a database that is taken over, as they are at that moment and with all that refers to them.

Migrations use this, so no model is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.db import connections

from onebeat.db import catalog, expressions
from onebeat.db.catalog import Reference
from onebeat.db.schema import LABEL

#: The columns that are the value of each kind of schedule that gets a unique constraint.
VALUES: dict[str, tuple[str, ...]] = {
    "interval": ("every", "period"),
    "crontab": ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"),
    "clocked": ("clocked_time",),
}
TASKS = f"{LABEL}_periodictask"
#: The engine's copies of definitions follow a merge, so that it does not look like somebody's edit.
_COPIES = "onebeat_taskstate"


def constraint_name(kind: str) -> str:
    """The name of a kind's unique constraint."""
    return f"onebeat_{kind}_value"


@dataclass(frozen=True, slots=True)
class ScheduleTable:
    """A schedule table: its kind, its primary key, the columns that are its value, and the columns that refer to it."""

    using: str
    kind: str
    name: str
    pk: str
    value: tuple[str, ...]
    references: tuple[Reference, ...] = ()

    @property
    def vendor(self) -> str:
        """The database's kind, as Django names it."""
        return connections[self.using].vendor

    def quoted(self, *names: str) -> str:
        return expressions.quoted(self.using, *names)

    # Any: the columns of any table and what they are compared with, of which each statement knows its own.
    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        with connections[self.using].cursor() as cursor:
            cursor.execute(sql, list(params) or None)
            return list(cursor.fetchall())

    def run(self, sql: str) -> int:
        """Execute a statement; returns how many rows it touched."""
        with connections[self.using].cursor() as cursor:
            cursor.execute(sql)
            return int(cursor.rowcount)

    def grouped(self, where: str = "") -> str:
        """SQL for (id, oldest): each row with the oldest one of its value, by the database's own equality.

        Not MIN(): MariaDB's time for that grows with the square of a group's size.
        """
        pk, value = self.quoted(self.pk), self.quoted(*self.value)
        return (
            f"SELECT {pk} AS id, FIRST_VALUE({pk}) OVER (PARTITION BY {value} ORDER BY {pk}) AS oldest "
            f"FROM {self.quoted(self.name)}{where}"
        )

    def as_text(self, columns: Sequence[str]) -> str:
        """SQL for the columns, each as the text that is stored."""
        if self.vendor != "sqlite":
            return self.quoted(*columns)
        return ", ".join(f"CAST({self.quoted(name)} AS TEXT)" for name in columns)

    def texts(self, keys: Sequence[int]) -> dict[int, str]:
        """The values of these rows as one text each, by key."""
        pk = self.quoted(self.pk)
        sql = f"SELECT {pk}, {self.as_text(self.value)} FROM {self.quoted(self.name)} WHERE {pk} IN ({listed(keys)})"
        return {int(key): " ".join(map(str, value)) for key, *value in self.rows(sql)} if keys else {}


def listed(keys: Sequence[int]) -> str:
    """SQL for a list of whole numbers."""
    return ", ".join(str(int(key)) for key in keys)


def schedule_table(using: str, kind: str, registry: Apps, *, alone: bool = False) -> ScheduleTable:
    """A schedule table with everything in the database that refers to it; `alone`: without.

    `registry` has the models as the tables are. Raises LookupError before the migration that makes the table.
    """
    meta = registry.get_model(LABEL, f"{kind}schedule")._meta
    assert meta.pk is not None
    table = ScheduleTable(using, kind, meta.db_table, meta.pk.column, VALUES[kind])
    if alone:
        return table
    found = catalog.references(using, table.name, table.pk, {installed, registry})
    found += catalog.generic_references(using, table.name, installed)
    if catalog.exists(using, _COPIES, kind):
        found.append(Reference(expressions.quoted(using, _COPIES), kind))
    return replace(table, references=tuple(found))
