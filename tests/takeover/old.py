"""A database as django-celery-beat leaves it, filled by SQL as its code would fill it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.processes import manage
from tests.scratch import Scratch

LAST = "0019_alter_periodictasks_options"
PREFIX = "django_celery_beat_"
TASK = {
    "task": "shop.remind", "args": "[]", "kwargs": "{}", "headers": "{}", "description": "", "one_off": False,
    "enabled": True, "total_run_count": 0, "date_changed": "2024-01-01 00:00:00",
}  # fmt: skip


class Old:
    """The tables at django-celery-beat 2.9.0, before ours."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        manage(scratch.env, "migrate", "--verbosity=0", "django_celery_beat", LAST)
        self.link = scratch.connect()

    def run(self, sql: str, *params: Any) -> list[Any]:
        with self.link.cursor() as cursor:
            cursor.execute(sql, params or None)
            return list(cursor.fetchall()) if cursor.description else []

    def insert(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Insert rows into a table of django-celery-beat's, named without its prefix."""
        for row in rows:
            names = ", ".join(self.link.ops.quote_name(name) for name in row)
            marks = ", ".join(["%s"] * len(row))
            self.run(f"INSERT INTO {PREFIX}{table} ({names}) VALUES ({marks})", *row.values())

    def intervals(self, *rows: tuple[int, int, str]) -> None:
        self.insert("intervalschedule", ({"id": key, "every": n, "period": unit} for key, n, unit in rows))

    def crontabs(self, *rows: Sequence[Any]) -> None:
        """(id, minute, hour, day of month, month, weekday[, zone])"""
        names = ("id", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone")
        self.insert("crontabschedule", (dict(zip(names, (*row, "UTC")[:7], strict=True)) for row in rows))

    def clocks(self, *rows: tuple[int, str]) -> None:
        self.insert("clockedschedule", ({"id": key, "clocked_time": text} for key, text in rows))

    def task(self, name: str, **values: Any) -> None:
        self.insert("periodictask", [{**TASK, "name": name, **values}])

    def migrate(self, *args: str) -> str:
        return manage(self.scratch.env, "migrate", *args)

    def keys(self, table: str) -> list[int]:
        return [key for (key,) in self.run(f"SELECT id FROM {PREFIX}{table} ORDER BY id")]

    def uses(self, column: str) -> dict[str, Any]:
        """Each task's key in the column."""
        return dict(self.run(f"SELECT name, {column} FROM {PREFIX}periodictask ORDER BY name"))
