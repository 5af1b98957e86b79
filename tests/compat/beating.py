"""Schedulers of Celery's beat under test, and the memory broker they send to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from onebeat.core import clock
from onebeat.models import PeriodicTask
from onebeat.models.instants import from_utc
from tests.engine.kit import every
from tests.project.celery import app


def task(name: str, **fields: Any) -> PeriodicTask:
    """A task that workers elsewhere have registered, every hour unless a schedule is given."""
    if not {"interval", "crontab", "clocked"} & fields.keys():
        fields["interval"] = every(3600)
    fields = {key: from_utc(value) if isinstance(value, datetime) else value for key, value in fields.items()}
    return PeriodicTask.objects.create(name=name, task="elsewhere.run", one_off="clocked" in fields, **fields)


def waiting() -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Take what is in the queue: (name of the periodic task, arguments, headers)."""
    found = []
    with app.connection_for_read() as link:
        queue = link.SimpleQueue("celery")
        while queue.qsize():
            message = queue.get(timeout=1)
            message.ack()
            found.append((message.headers["periodic_task_name"], message.payload[0], message.headers))
        queue.close()
    return found


def run(scheduler: Any, seconds: int) -> list[str]:
    """Tick every second for so long; returns the names of what was sent."""
    for _ in range(seconds):
        clock.move(clock.host_now() + timedelta(seconds=1))
        scheduler.tick()
    return [name for name, _, _ in waiting()]


def drive(scheduler: Any) -> list[str]:
    """Tick until it wants to sleep; returns the names of what was sent."""
    for _ in range(50):
        if scheduler.tick() > 0:
            return [name for name, _, _ in waiting()]
    raise AssertionError("it never sleeps")
