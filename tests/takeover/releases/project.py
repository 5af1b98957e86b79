"""The project in `legacy` on one database: its steps run under django-celery-beat of a release, or under onebeat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT
from tests.scratch import Post, Scratch
from tests.takeover.old import PREFIX

HERE = Path(__file__).parent
Step = tuple[Any, ...]
#: Each kind of schedule's value as one text.
VALUES = {
    "interval": "{0}.every, {0}.period",
    "crontab": "{0}.minute, {0}.hour, {0}.day_of_month, {0}.month_of_year, {0}.day_of_week, {0}.timezone",
    "solar": "{0}.event, {0}.latitude, {0}.longitude",
    "clocked": "{0}.clocked_time",
}
COLUMNS = (
    *("name", "task", "args", "kwargs", "queue", "exchange", "routing_key", "headers", "priority", "expires"),
    *("expire_seconds", "one_off", "start_time", "enabled", "last_run_at", "total_run_count", "description"),
)


class Project:
    """`old` is the Python of the release's environment."""

    def __init__(self, scratch: Scratch, post: Post | None, old: str, *, use_tz: bool) -> None:
        self.scratch, self.post, self.old, self.use_tz = scratch, post, old, use_tz

    def before(self, *steps: Step) -> list[Any]:
        """Run steps under django-celery-beat. Returns their answers."""
        return self._run(self.old, "django_celery_beat", steps)

    def onebeat(self, *steps: Step) -> list[Any]:
        """Run steps under onebeat."""
        return self._run(sys.executable, "onebeat", steps)

    def _run(self, python: str, app: str, steps: tuple[Step, ...]) -> list[Any]:
        return self.answers(self._start(python, app, steps))

    def start_before(self, *steps: Step) -> subprocess.Popen[str]:
        """Start steps under django-celery-beat, whose `answers` are asked for later."""
        return self._start(self.old, "django_celery_beat", steps)

    def answers(self, process: subprocess.Popen[str]) -> list[Any]:
        told, errors = process.communicate()
        if process.returncode:
            pytest.fail(f"{process.args}:\n{told}{errors}")
        found: list[Any] = json.loads(told.splitlines()[-1])
        return found

    def _start(self, python: str, app: str, steps: tuple[Step, ...]) -> subprocess.Popen[str]:
        env = {
            name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "ONEBEAT", "PYTHON"))
        }
        env |= {
            "PYTHONPATH": str(HERE),
            "DJANGO_SETTINGS_MODULE": "legacy.settings",
            "LEGACY_DB": json.dumps(self.scratch.settings),
            "LEGACY_BEAT": app,
            "LEGACY_USE_TZ": str(int(self.use_tz)),
            "LEGACY_BROKER": self.post.url if self.post else "memory://",
            "LEGACY_QUEUE": self.post.queue if self.post else "celery",
        }
        return subprocess.Popen(
            [python, "-W", "ignore", "-m", "legacy.main", json.dumps(steps)],
            env=env,
            cwd=ROOT.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @cached_property
    def link(self) -> Any:
        return self.scratch.connect()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self.link.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()]

    def tasks(self) -> dict[str, tuple[Any, ...]]:
        """Everything that a task's row says, by name; schedules by their values."""
        joins = " ".join(f"LEFT JOIN {PREFIX}{kind}schedule s_{kind} ON s_{kind}.id = t.{kind}_id" for kind in VALUES)
        values = ", ".join(text.format(f"s_{kind}") for kind, text in VALUES.items())
        columns = ", ".join(f"t.{name}" for name in COLUMNS)
        return {
            row[0]: row
            for row in self.rows(f"SELECT {columns}, {values} FROM {PREFIX}periodictask t {joins} ORDER BY 1")
        }

    def clients(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of others, each with the value of the schedule that it refers to."""
        refers = {
            "clients_reminder": ("clocked_id", "clocked"),
            "clients_rota": ("crontab_id", "crontab"),
            "unknown_interval": ("plan", "interval"),
            "unknown_clocked": ("plan", "clocked"),
        }
        return {
            table: self.rows(
                f"SELECT {'nr' if column == 'plan' else 'note'}, {VALUES[kind].format('s')} FROM {table} r "
                f"JOIN {PREFIX}{kind}schedule s ON s.id = r.{column} ORDER BY 1"
            )
            for table, (column, kind) in refers.items()
        }

    def counts(self) -> dict[str, int]:
        """How many rows of each kind of schedule there are."""
        return {kind: self.rows(f"SELECT COUNT(*) FROM {PREFIX}{kind}schedule")[0][0] for kind in VALUES}

    def crontabs(self) -> dict[str, str]:
        """The value of each row, by its key as JSON has it."""
        rows = self.rows(f"SELECT id, {VALUES['crontab'].format('s')} FROM {PREFIX}crontabschedule s")
        return {str(key): " ".join(value) for key, *value in rows}

    def sent(self) -> dict[str, list[str]]:
        """Take what is in the broker's queue: for each periodic task the nominal times that onebeat gives."""
        names = dict(self.rows(f"SELECT task, name FROM {PREFIX}periodictask"))
        found = defaultdict(list)
        assert self.post
        for message in self.post.drain():
            found[names[message.headers["task"]]].append(message.headers.get("onebeat_due_at", ""))
        return {name: sorted(times) for name, times in found.items()}
