"""A ledger, a queue and workers. Messages are sent as a scheduler sends them, as often as a test likes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from onebeat.db.utc_columns import from_column, to_column
from tests import services
from tests.processes import ROOT, environment, eventually
from tests.scratch import Post, Scratch, Templates

LIMIT = 60.0
START = datetime(2026, 3, 10, 10, tzinfo=UTC)
COLUMNS = (
    "state",
    "attempt",
    "outcome",
    "duplicate_deliveries",
    "error",
    "worker",
    "started_at",
    "finished_at",
    "sent_at",
)


@dataclass(frozen=True)
class Sent:
    """An occurrence: its key in the ledger, and what every copy of its message carries."""

    key: int
    id: str
    headers: dict[str, Any]


@dataclass
class Desk:
    database: Scratch
    post: Post
    folder: Path
    settings: dict[str, Any]
    app: Celery = field(init=False)
    _count: int = 0

    def __post_init__(self) -> None:
        self.app = Celery("desk", broker=self.post.url, set_as_current=False)
        self.app.conf.task_default_queue = self.post.queue
        self.app.conf.result_backend = self.settings.get("CELERY_RESULT_BACKEND")
        self.link = self.database.connect()

    @contextmanager
    def worker(
        self, pool: str, name: str = "worker", more: dict[str, str] | None = None, options: Sequence[str] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker with two processes, or one; killed with all it has started when the block ends. `more`: of its
        environment; `options`: of its command."""
        own = {"ONEBEAT_TEST_LOG": str(self.folder / "ran"), "ONEBEAT_TEST_CELERY": json.dumps(self.settings)}
        given = ["-P", pool, "-c", "2", "-n", f"{name}@here", "-l", "info", "--without-mingle", "--without-gossip"]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tests.project.celery", "worker", *given, *options],
                env=environment({**self.database.env, **self.post.env, **own, **(more or {})}),
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            kill(process)

    def log(self, name: str = "worker") -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def occurrence(self, state: str = "sent") -> Sent:
        """A new row of the ledger."""
        self._count += 1
        due_at, made = START + timedelta(seconds=self._count), uuid.uuid4()
        stored = str(made) if self.link.features.has_native_uuid_field else made.hex
        instant = to_column(self.database.vendor, due_at)
        columns = "task_id, task_uid, task_name, due_at, run, state, reason, detail, celery_task_id, claims, decided_at"
        with self.link.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO onebeat_occurrence ({columns}) VALUES (1, 1, 't', %s, 0, %s, '', '', %s, 1, %s)",
                [instant, state, stored, instant],
            )
            cursor.execute("SELECT id FROM onebeat_occurrence WHERE due_at = %s", [instant])
            key = cursor.fetchone()[0]
        headers = {"onebeat_task": 1, "onebeat_due_at": due_at.isoformat(), "onebeat_run": 0}
        return Sent(key, str(made), headers)

    def send(self, task: str, one: Sent, *args: Any, copies: int = 1, **options: Any) -> Sent:
        """The message of an occurrence, `copies` times."""
        for _ in range(copies):
            name = task if "." in task else f"tests.celery.tasks.{task}"
            self.app.send_task(name, args, task_id=one.id, headers=one.headers, **options)
        return one

    def many(self, task: str, number: int, *args: Any) -> None:
        """So many occurrences and their messages."""
        self.link.set_autocommit(False)
        made = [self.occurrence() for _ in range(number)]
        self.link.commit()
        self.link.set_autocommit(True)
        with self.app.producer_pool.acquire(block=True) as producer:
            for one in made:
                self.send(task, one, *args, producer=producer)

    def tally(self) -> dict[str, int]:
        """How many occurrences are in each state."""
        with self.link.cursor() as cursor:
            cursor.execute("SELECT state, count(*) FROM onebeat_occurrence GROUP BY state")
            return dict(cursor.fetchall())

    def row(self, one: Sent) -> dict[str, Any]:
        with self.link.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM onebeat_occurrence WHERE id = %s", [one.key])
            found = dict(zip(COLUMNS, cursor.fetchone(), strict=True))
        return {name: from_column(value) if name.endswith("_at") else value for name, value in found.items()}

    def becomes(self, one: Sent, **values: Any) -> dict[str, Any]:
        """Wait until the row has these values, and return it."""
        found: dict[str, Any] = {}

        def there() -> bool:
            found.update(self.row(one))
            return {name: found[name] for name in values} == values

        try:
            eventually(there, LIMIT, f"{values}")
        except pytest.fail.Exception:
            pytest.fail(f"waited for {values}, the row is {found}\n{self.log()[-3000:]}")
        return found

    def lines(self) -> list[dict[str, Any]]:
        file = self.folder / "ran"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def ran(self, key: str) -> int:
        """How many bodies have run for this key."""
        return Counter(line["key"] for line in self.lines())[key]

    def wait_ran(self, *keys: str) -> None:
        eventually(lambda: all(map(self.ran, keys)), LIMIT, f"{keys} to run")

    def let_go(self) -> None:
        """Bodies that wait go on."""
        (self.folder / "ran-go").touch()

    def hold(self) -> None:
        (self.folder / "ran-go").unlink(missing_ok=True)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a worker and all its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def desk(templates: Templates, folder: Path, broker: str, *databases: str, modules: list[str]) -> Iterator[Desk]:
    """On a broker, and the first of these databases that is here."""
    brokers = {each.name: each for each in services.brokers()}
    found = {each.name: each for each in services.databases()}
    if broker not in brokers:
        pytest.skip(f"{broker} is not here")
    with ExitStack() as stack:
        kind = next(found[name] for name in (*databases, "sqlite") if name in found)
        scratch = stack.enter_context(Scratch.open(kind, templates.of(kind)))
        post = stack.enter_context(Post.open(brokers[broker]))
        settings: dict[str, Any] = {"CELERY_IMPORTS": modules, "CELERY_WORKER_PREFETCH_MULTIPLIER": 1}
        if broker == "redis":
            settings |= {"CELERY_RESULT_BACKEND": post.url, "CELERY_TASK_IGNORE_RESULT": False}
        made = Desk(scratch, post, folder, settings)
        yield made
        made.app.close()
