"""The connection to the database is lost between two statements: no scheduler ends by it, whatever class of error the
driver has for that. (Where its own end is closed, mysqlclient raises one past Django's when a query set closes its
cursor.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.processes import run_python
from tests.scratch import Scratch


def cut_everywhere(url: str, ours: bool) -> dict[str, Any]:
    """In a process of its own, whose way to the database is a proxy: what became of each scheduler's work when its
    connection was cut, or our end of it closed, and another was to be had.
    """
    from django.db import connection

    from onebeat.core import clock
    from tests.engine.kit import START
    from tests.proxy import Proxy

    with Proxy(url) as proxy, clock.pin(START):
        connection.settings_dict.update(HOST="127.0.0.1", PORT=proxy.port)

        def cut() -> None:
            connection.ensure_connection()
            if ours:
                connection.connection.close()
            else:
                proxy.cut()

        return {work.__name__: work(cut) for work in (engine, goodbye, clean_up, entries, classic)}


def engine(cut: Callable[[], None]) -> Any:
    """Cut when the broker has the message, which is recorded next."""
    from onebeat.core import clock
    from onebeat.dispatch.base import Accepted
    from onebeat.engine.loop import Loop
    from onebeat.engine.stop import Stop
    from tests.engine.kit import Bench, at, every, ledger, task

    bench = Bench()
    loop, one = Loop(bench.engine, Stop()), task(interval=every(10))
    loop.tick()
    clock.move(at(10))
    bench.outbox.answer = lambda message: cut() or Accepted()
    loop.tick()
    loop.tick()
    loop.close()
    return [bench.sent, [list(row) for row in ledger(one)]]


def goodbye(cut: Callable[[], None]) -> Any:
    """Cut when the scheduler is about to write what it owes."""
    from onebeat.core import clock
    from onebeat.engine.loop import Loop
    from onebeat.engine.stop import Stop
    from tests.engine.kit import Bench, at

    bench = Bench()
    loop = Loop(bench.engine, Stop())
    clock.move(at(20))
    loop.tick()
    cut()
    loop.close()
    return "closed"


def clean_up(cut: Callable[[], None]) -> Any:
    """Celery's clean-up of results is stored with the first tick that can."""
    from onebeat.celery.beat import Scheduler
    from onebeat.models import PeriodicTask
    from tests.project.celery import app

    app.conf.task_ignore_result, app.conf.result_backend = False, "file:///tmp"
    scheduler = Scheduler(app=app)
    cut()
    scheduler.tick()
    scheduler.tick()
    scheduler.close()
    return PeriodicTask.objects.filter(name="celery.backend_cleanup").count()


def entries(cut: Callable[[], None]) -> Any:
    """No entry of the settings is to blame."""
    from onebeat.compat.schedulers import DatabaseScheduler
    from onebeat.models import PeriodicTask
    from tests.project.celery import app

    app.conf.beat_schedule = {"declared": {"task": "a.b", "schedule": 30.0}}
    scheduler = DatabaseScheduler(app=app)
    cut()
    scheduler.tick()
    scheduler.tick()
    scheduler.close()
    return PeriodicTask.objects.filter(name="declared").count()


def classic(cut: Callable[[], None]) -> Any:
    """Its entries stay as they are, and are read again."""
    from onebeat.compat.schedulers import DatabaseScheduler
    from onebeat.models import PeriodicTask
    from tests.project.celery import app

    class Own(DatabaseScheduler):
        def is_due(self, entry: Any) -> Any:
            return super().is_due(entry)

    scheduler = Own(app=app)
    before = set(scheduler.schedule)
    cut()
    scheduler.tick()
    cut()
    same = set(scheduler.schedule) == before
    PeriodicTask.objects.filter(name="declared").update(enabled=False)
    cut()
    scheduler.tick()
    scheduler.tick()
    after = set(scheduler.schedule)
    scheduler.close()
    return [same, sorted(before - after)]


@pytest.mark.parametrize("ours", [False, True], ids=["cut", "closed"])
def test_a_loss_between_two_statements(database: Scratch, ours: bool) -> None:
    if database.vendor == "sqlite":
        pytest.skip("no connection to cut")
    assert run_python(database.env, cut_everywhere, database.kind.url, ours) == {
        "engine": [[["t", 10]], [[10, "sent", ""]]],
        "goodbye": "closed",
        "clean_up": 1,
        "entries": 1,
        "classic": [True, ["declared"]],
    }
