"""The shipped scheduler of `onebeat.testing` under the terms of our own tests, and short words for rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, connections

from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.core.headers import DUE_HEADER, NAME_HEADER
from onebeat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    Occurrence,
    PeriodicTask,
    TaskOptions,
    TaskState,
)
from onebeat.models.instants import from_utc
from onebeat.queries.explain import Verdict, explain
from onebeat.store.sweep import Sweep
from onebeat.testing.scheduler import Died, Outbox, Scheduler

__all__ = ["Died", "Outbox"]

#: A Tuesday. The clock stands here when a test begins.
START = datetime(2026, 3, 10, 10, tzinfo=UTC)
#: The sweep is made by hand, so that a test knows which way a change was seen; and nothing is pruned behind its back.
SETTINGS = Settings(sweep_size=0, keep_days=0, keep_failed_days=0)

TASK = "django_celery_beat_periodictask"


def at(seconds: float) -> datetime:
    """The instant so long after START."""
    return START + timedelta(seconds=seconds)


def seconds(instant: datetime | None) -> float | None:
    """How long after START; whole where it is whole."""
    if instant is None:
        return None
    found = (instant - START).total_seconds()
    return int(found) if found == int(found) else found


class Bench(Scheduler):
    """One scheduler under test, with its outbox."""

    def __init__(self, outbox: Outbox | None = None, **settings: Any) -> None:
        super().__init__(outbox, replace(SETTINGS, **settings))
        self._taken = 0

    def advance(self, seconds: float) -> None:
        """Move the clock at once and tick: for more than a few seconds, nobody was at work meanwhile."""
        clock.move(clock.host_now() + timedelta(seconds=seconds))
        self.tick()

    def work(self, seconds: int) -> None:
        """Tick every second for so long."""
        for _ in range(seconds):
            self.advance(1)

    @property
    def sent(self) -> list[tuple[str, float | None]]:
        """(name, nominal time in seconds after START) of everything sent so far."""
        return [
            (one.options["headers"][NAME_HEADER], seconds(datetime.fromisoformat(one.options["headers"][DUE_HEADER])))
            for one in self.outbox.messages
        ]

    def take(self) -> list[tuple[str, float | None]]:
        """What was sent since this was asked last."""
        found = self.sent[self._taken :]
        self._taken += len(found)
        return found


def sweep() -> None:
    """One way through all tasks, as some scheduler makes it within the poll interval."""
    Sweep("default", 1000).step()


def every(amount: int, period: str = "seconds") -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=amount, period=period)[0]


def cron(minute: str, hour: str = "*", **fields: Any) -> CrontabSchedule:
    return CrontabSchedule.objects.get_or_create(minute=minute, hour=hour, **{"timezone": "UTC", **fields})[0]


def clocked(instant: datetime) -> ClockedSchedule:
    return ClockedSchedule.objects.get_or_create(clocked_time=from_utc(instant))[0]


def task(name: str = "t", **fields: Any) -> PeriodicTask:
    """A task, every minute unless a schedule is given; a clocked one is one-off."""
    if not {"interval", "crontab", "solar", "clocked"} & fields.keys():
        fields["interval"] = every(60)
    if "clocked" in fields:
        fields["one_off"] = True
    return PeriodicTask.objects.create(name=name, task="tests.engine.add", **fields)


def options(of: PeriodicTask, **fields: Any) -> None:
    TaskOptions.objects.update_or_create(task=of, defaults=fields)


def due(of: PeriodicTask) -> float | None:
    """When a task is due next, in seconds after START."""
    return seconds(TaskState.objects.get(pk=of.pk).due_at)


def reason(of: PeriodicTask) -> str:
    """Why a task is quarantined."""
    return TaskState.objects.get(pk=of.pk).quarantine


def finish(of: PeriodicTask, due_at: float, state: str = "succeeded") -> None:
    """A worker says that this occurrence has come so far."""
    done = Occurrence.objects.filter(task_id=of.pk, due_at=at(due_at), state__in=["sent", "started"])
    assert done.update(state=state) == 1


def why(of: PeriodicTask | str, second: float) -> Verdict:
    """What `explain` says of a task at so many seconds after START."""
    return explain("default", of, at(second))


def ledger(of: PeriodicTask) -> list[tuple[float | None, str, str]]:
    """(nominal time, state, reason) of each occurrence."""
    rows = Occurrence.objects.filter(task_id=of.pk).order_by("due_at", "run")
    return [(seconds(row.due_at), str(row.state), row.reason) for row in rows]


def sql(statement: str, *params: Any) -> None:
    """A change past the ORM."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def set_task(of: PeriodicTask, **columns: Any) -> None:
    """Set columns of a task's row past the ORM."""
    names = ", ".join(f"{connection.ops.quote_name(name)} = %s" for name in columns)
    sql(f"UPDATE {TASK} SET {names} WHERE id = %s", *columns.values(), of.pk)


@contextmanager
def another_session() -> Any:
    """A second connection to the same database, in an open transaction that is rolled back at the end."""
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute("ROLLBACK")
    finally:
        other.close()
