"""A database as django-celery-beat leaves it, filled by SQL as its code would fill it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pytest

from tests.databases import Database
from tests.processes import run_python
from tests.scratch import Scratch

LAST = "0019_alter_periodictasks_options"
PREFIX = "django_celery_beat_"
TASK = {
    "task": "shop.remind", "args": "[]", "kwargs": "{}", "headers": "{}", "description": "", "one_off": False,
    "enabled": True, "total_run_count": 0, "date_changed": "2024-01-01 00:00:00",
}  # fmt: skip


MIGRATE = ("migrate", "--verbosity=0", "django_celery_beat")
BACK = (*MIGRATE, LAST)
CHECK = ("onebeat", "adopt", "--check")


@pytest.fixture(scope="session")
def old_templates() -> Iterator[dict[Database, str]]:
    """One database for each kind, migrated to the last of django-celery-beat's, copied for each test."""
    made: dict[Database, str] = {}
    yield made
    for kind, name in made.items():
        kind.drop_database(name)


@pytest.fixture
def old(blank_database: Scratch, old_templates: dict[Database, str]) -> Iterator[Old]:
    kind = blank_database.kind
    if kind not in old_templates:
        old_templates[kind] = kind.create_database()
        others = (("migrate", "--verbosity=0", app) for app in ("auth", "contenttypes"))
        Old(Scratch(kind, old_templates[kind])).call(BACK, *others)
    with Scratch.open(kind, old_templates[kind]) as scratch:
        yield Old(scratch)


class Old:
    """The tables at django-celery-beat 2.9.0, before ours."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch

    @cached_property
    def link(self) -> Any:
        return self.scratch.connect()

    def call(self, *commands: Sequence[str]) -> list[str]:
        """Run commands of manage.py, one after the other in one process. Returns what each printed."""
        answers = run_python(self.scratch.env, calls, commands)
        assert not [text for code, text in answers if code]
        return [text for _, text in answers]

    def refused(self, command: Sequence[str]) -> str:
        """What a command says that must end with exit code 1 and no traceback."""
        ((code, text),) = run_python(self.scratch.env, calls, [command])
        assert code == 1, text
        return str(text)

    def migrate(self) -> dict[str, Any]:
        """To the last of ours. Returns the report of it."""
        _, report = self.call(MIGRATE, ("onebeat", "adopt", "--json"))
        found: dict[str, Any] = json.loads(report)
        return found

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

    def keys(self, table: str) -> list[int]:
        return [key for (key,) in self.run(f"SELECT id FROM {PREFIX}{table} ORDER BY id")]

    def uses(self, column: str) -> dict[str, Any]:
        """Each task's key in the column."""
        return dict(self.run(f"SELECT name, {column} FROM {PREFIX}periodictask ORDER BY name"))


def calls(commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """In another process: (exit code, output) of each command."""
    from django.core.management import CommandError, call_command

    done = []
    for name, *args in commands:
        told, code = io.StringIO(), 0
        try:
            call_command(name, *args, stdout=told, stderr=told)
        except CommandError as error:
            told.write(str(error))
            code = error.returncode
        done.append((code, told.getvalue()))
    return done
