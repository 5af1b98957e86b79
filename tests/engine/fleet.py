"""Several scheduler processes on one database and one broker, and a look at what they did.

`Fleet.differences` compares three things: the ledger, the messages the broker got, and what the test expects.
Everything that differs is a line of text, so that a failed assertion reads like a report.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import services
from tests.processes import eventually, run_python
from tests.scratch import Post, Scratch, Templates

Process = subprocess.Popen[bytes]
Spawn = Callable[..., Process]

BEAT = ("-m", "celery", "-A", "tests.project.celery", "beat", "-S", "onebeat", "-l", "info")
RUN = ("-m", "tests.project.manage", "onebeat", "run")
KINDS = {"beat": BEAT, "run": RUN}
ADD = {"task": "tests.project.tasks.add", "args": "[1, 2]"}
#: A limit for things that take a moment on an idle machine, in seconds.
LIMIT = 60.0
SECOND = timedelta(seconds=1)


class Place(NamedTuple):
    """Where a fleet works, and how many schedulers it has."""

    database: str
    broker: str
    schedulers: int = 1
    use_tz: str = "1"

    def __str__(self) -> str:
        return "-".join(map(str, self[:3])) + ("" if self.use_tz == "1" else "-naive")


@dataclass(frozen=True)
class Row:
    """One occurrence in the ledger."""

    id: int
    task: str
    due_at: datetime
    last_due_at: datetime | None
    state: str
    reason: str
    detail: str
    message_id: str
    claims: int
    sent_at: datetime | None
    #: Seconds until its lease ends, by the database's clock; None when it has none.
    lease: float | None


@dataclass
class Fleet:
    """Schedulers that share a database and a broker. `env` is on top of theirs: a proxy in front of one, say."""

    place: Place
    database: Scratch
    post: Post
    spawn: Spawn
    settings: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    running: list[Process] = field(default_factory=list)
    messages: list[services.Message] = field(default_factory=list)
    _connection: Any = None

    def start(self, kind: str, **env: str) -> Process:
        """Start one scheduler of a kind of KINDS; `env` is on top of the fleet's."""
        process = self.spawn(self.environment(**env), *KINDS[kind])
        self.running.append(process)
        return process

    def environment(self, **env: str) -> dict[str, str]:
        own = {"ONEBEAT_TEST_SETTINGS": json.dumps(self.settings), "ONEBEAT_TEST_USE_TZ": self.place.use_tz}
        return {**self.database.env, **self.post.env, **own, **self.env, **env}

    def start_all(self) -> None:
        """Start as many as the place wants, of both kinds in turn."""
        for number in range(self.place.schedulers):
            self.start("run" if number % 2 else "beat")

    def wait_able(self) -> None:
        """Wait until all that run are able to send."""

        def able() -> bool:
            self.all_alive()
            found = self.query("SELECT COUNT(*) FROM onebeat_beat WHERE able_since IS NOT NULL AND stopped_at IS NULL")
            return bool(found[0][0] >= len(self.running))

        eventually(able, LIMIT, f"{len(self.running)} schedulers that can send on {self.place}")

    def all_alive(self) -> None:
        """A scheduler that ended by itself fails the test."""
        assert [one.poll() for one in self.running] == [None] * len(self.running), "a scheduler ended by itself"

    def make(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run `function(*args)` on this database, in a process with Django."""
        return run_python(self.environment(), function, *args)

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Signal all and wait for them. Returns the seconds it took the slowest; a code other than 0 fails the test."""
        self.all_alive()
        began = time.monotonic()
        for process in self.running:
            process.send_signal(number)
        codes = [process.wait(LIMIT) for process in self.running]
        took = time.monotonic() - began
        self.running.clear()
        assert set(codes) <= {0}, f"exit codes {codes}"
        return took

    def query(self, sql: str) -> list[Any]:
        if self._connection is None:
            self._connection = self.database.connect()
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def count(self, where: str) -> int:
        return int(self.query(f"SELECT COUNT(*) FROM onebeat_occurrence WHERE {where}")[0][0])

    def now(self) -> datetime:
        """The database's clock."""
        from onebeat.db.utc_columns import from_column

        found = from_column(self.query(f"SELECT {_CLOCK[self.database.vendor]}")[0][0])
        assert found is not None
        return found

    def ledger(self) -> list[Row]:
        """All occurrences, oldest first."""
        from onebeat.db.utc_columns import from_column

        now = self.now()
        rows = self.query(
            "SELECT id, task_name, due_at, last_due_at, state, reason, detail, celery_task_id, claims, sent_at,"
            " (SELECT lease_until FROM onebeat_batch WHERE token = claim_token AND state = 'claimed')"
            " FROM onebeat_occurrence ORDER BY due_at, id"
        )
        found = []
        for key, task, due_at, last_due_at, state, reason, detail, message_id, claims, sent_at, lease in rows:
            due, until = from_column(due_at), from_column(lease)
            assert due is not None
            left = None if until is None else (until - now).total_seconds()
            ident = str(uuid.UUID(str(message_id)))
            last_due_at, sent_at = from_column(last_due_at), from_column(sent_at)
            found.append(Row(key, task, due, last_due_at, state, reason, detail, ident, claims, sent_at, left))
        return found

    def collect(self) -> list[services.Message]:
        """Take what the broker has; everything taken so far is in `messages`."""
        self.messages += self.post.drain()
        return self.messages

    def finished(self, occurrences: int = 0) -> bool:
        """Whether every task has run its course, with at least so many occurrences decided and none left claimed."""
        self.all_alive()
        waiting = self.query("SELECT COUNT(*) FROM onebeat_taskstate WHERE due_at IS NOT NULL")[0][0]
        unplanned = self.query("SELECT COUNT(*) FROM onebeat_change")[0][0]
        done = self.count("state <> 'claimed'")
        return not waiting and not unplanned and done >= occurrences and not self.count("state = 'claimed'")

    def sent(self, task: str) -> list[datetime]:
        """The nominal times of a task that the ledger calls sent."""
        return [row.due_at for row in self.ledger() if row.task == task and row.state == "sent"]

    def has_sent(self, task: str, count: int) -> bool:
        self.all_alive()
        return self.count(f"state = 'sent' AND task_name = '{task}'") >= count

    def differences(self, *, once: Collection[str] = (), every: Collection[str] = (), copies: int = 0) -> list[str]:
        """What is not as it should be, a line each; empty when all is well.

        `once`: tasks with exactly one occurrence, sent. `every`: tasks sent for each second from their first to their
        last; what was due in the moment it was disabled is nobody's loss. `copies`: how many messages may be second
        copies of an occurrence.
        """
        rows, messages = self.ledger(), self.collect()
        return [
            *_unlike(rows, messages),
            *_copied(messages, copies),
            *_not_once(rows, once),
            *(line for task in every for line in _gaps(task, [row for row in rows if row.task == task])),
        ][:20]


@contextmanager
def fleets(templates: Templates, spawn: Spawn, *places: Place) -> Iterator[list[Fleet]]:
    """A fleet for each place that is to be had here: work that mostly waits is done side by side."""
    databases = {each.name: each for each in services.databases()}
    brokers = {each.name: each for each in services.brokers()}
    with ExitStack() as stack:
        found = []
        for place in places:
            if place.database in databases and place.broker in brokers:
                kind = databases[place.database]
                scratch = stack.enter_context(Scratch.open(kind, templates.of(kind)))
                post = stack.enter_context(Post.open(brokers[place.broker]))
                found.append(Fleet(place, scratch, post, spawn))
        if not found:
            pytest.skip("none of these databases and brokers is here")
        yield found


_CLOCK = {
    "postgresql": "clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "UTC_TIMESTAMP(6)",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
}


def _unlike(rows: list[Row], messages: list[services.Message]) -> list[str]:
    """Where ledger and broker differ."""
    sent = {row.message_id: row for row in rows if row.state == "sent"}
    lines = [f"left in state {row.state}: {row}" for row in rows if row.state not in ("sent", "skipped")]
    arrived = set()
    for message in messages:
        headers = message.headers
        key = headers["id"]
        row = sent.get(key)
        says = (headers["id"], headers.get("periodic_task_name"), headers.get("onebeat_due_at"))
        if row is None:
            lines.append(f"the broker has {says}, the ledger has no sent occurrence {key}")
        elif says != (row.message_id, row.task, row.due_at.isoformat()):
            lines.append(f"the broker has {says}, the ledger has {row}")
        arrived.add(key)
    return lines + [f"the broker never got {row}" for key, row in sent.items() if key not in arrived]


def _copied(messages: list[services.Message], allowed: int) -> list[str]:
    copies = extra_copies(messages)
    if sum(copies.values()) <= allowed:
        return []
    return [f"{sum(copies.values())} copies where {allowed} are allowed: {dict(copies.most_common(3))}"]


def extra_copies(messages: list[services.Message]) -> Counter[str]:
    """How many messages came beyond the first, for each (task, nominal time) that has any."""
    seen = Counter(f"{one.headers['periodic_task_name']} at {one.headers['onebeat_due_at']}" for one in messages)
    return Counter({key: count - 1 for key, count in seen.items() if count > 1})


def unaccounted(rows: Iterable[Row]) -> list[str]:
    """Where an every-second task has a second that is neither sent nor skipped with a reason, or one that is both."""
    times = sorted((row.due_at, row.last_due_at or row.due_at) for row in rows)
    return [f"from {last} to {first}" for (_, last), (first, _) in pairwise(times) if first - last != SECOND]


def _not_once(rows: list[Row], once: Collection[str]) -> list[str]:
    by_task: dict[str, list[str]] = {task: [] for task in once}
    for row in rows:
        if row.task in by_task:
            by_task[row.task].append(f"{row.state} {row.reason}".strip())
    return [f"{task} should have been sent once: {found}" for task, found in by_task.items() if found != ["sent"]]


def _gaps(task: str, rows: list[Row]) -> list[str]:
    skipped = [row for row in rows if row.state == "skipped"]
    if skipped and skipped[-1].reason == "disabled" and skipped[-1] is rows[-1]:
        skipped.pop()
    lines = [f"{task} was not sent at {row.due_at}: {row.reason}" for row in skipped]
    times = [row.due_at for row in rows if row.state == "sent"]
    if not times:
        return [*lines, f"{task} was never sent"]
    return lines + [f"{task} went from {one} to {other}" for one, other in pairwise(times) if other - one != SECOND]


# -- run in processes with Django ----------------------------------------------------------------------------------


def make_one_offs(prefix: str, count: int, after: float, spread: float = 0.0) -> list[str]:
    """Tasks due at one instant `after` seconds from now, or at twenty instants over `spread` seconds from then on."""
    from django.utils import timezone

    from onebeat.models import ClockedSchedule, PeriodicTask

    begin = timezone.now() + timedelta(seconds=after)
    times = [begin + timedelta(seconds=spread * step / 20) for step in range(20 if spread else 1)]
    clocked = [ClockedSchedule.objects.get_or_create(clocked_time=each)[0] for each in times]
    names = [f"{prefix} {number}" for number in range(count)]
    PeriodicTask.objects.bulk_create(
        PeriodicTask(name=name, **ADD, clocked=clocked[at % len(clocked)], one_off=True)
        for at, name in enumerate(names)
    )
    return names


def make_every_second(prefix: str, count: int) -> list[str]:
    """Tasks that are due every second from now on."""
    from onebeat.models import IntervalSchedule, PeriodicTask

    second, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.SECONDS)
    names = [f"{prefix} {number}" for number in range(count)]
    for name in names:
        PeriodicTask.objects.create(name=name, **ADD, interval=second)
    return names


def disable(*names: str) -> None:
    from onebeat.models import PeriodicTask

    PeriodicTask.objects.filter(name__in=names).update(enabled=False)


def hold_a_task(name: str, folder: str) -> None:
    """Change a task and add another in a transaction that stays open from when `held` is there until `let go` is."""
    import django
    from django.db import transaction

    django.setup()
    from onebeat.models import PeriodicTask

    with transaction.atomic():
        task = PeriodicTask.objects.select_for_update().get(name=name)
        task.description = "being edited"
        task.save()
        PeriodicTask.objects.create(name="new", **ADD, interval=task.interval)
        Path(folder, "held").touch()
        eventually(Path(folder, "let go").exists, LIMIT, "the end of a person's transaction")


def _die_at(point: str, turn: int) -> None:
    """A scheduler that kills itself with SIGKILL when it comes to a stop point for the `turn`-th time."""
    import django

    django.setup()
    from onebeat.conf import current
    from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
    from onebeat.engine.assembly import Assembly
    from onebeat.engine.loop import Loop
    from onebeat.engine.stop import Stop
    from onebeat.engine.tick import Engine
    from tests.project.celery import app

    passed = Counter[str]()

    def at(name: str) -> None:
        passed[name] += 1
        if name == point and passed[name] == turn:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = current()
    dispatcher = CeleryDispatcher(app, plain_below=settings.plain_below)
    Loop(Engine(Assembly(dispatcher, settings, at=at)), Stop()).run()


def _skewed(seconds: float) -> None:
    """`manage.py onebeat run` on a host whose clock is so far ahead, for whatever in it asks for the time."""
    from django.core.management import execute_from_command_line
    from django.utils import timezone

    from onebeat.core import clock

    def ahead() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    time.time = lambda real=time.time: real() + seconds  # type: ignore[assignment, misc]
    timezone.now = ahead  # Django's own, for its automatic fields
    clock.use(clock.Source(now=ahead))
    execute_from_command_line(["manage.py", "onebeat", "run"])


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold_a_task(*sys.argv[2:])
    elif sys.argv[1] == "skewed":
        _skewed(float(sys.argv[2]))
    else:
        _die_at(sys.argv[1], int(sys.argv[2]))
