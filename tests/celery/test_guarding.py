"""The guard and the signals around a body, run by Celery's own tracer in this process."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, Task, signals
from celery.app.task import Context
from celery.app.trace import build_tracer
from django.db import connection

from onebeat import conf
from onebeat.celery import Guarded, guard, guarding, recorder, worker
from onebeat.models import Occurrence
from tests.engine.kit import Bench, at, sql

Run = Callable[..., Any]


@pytest.fixture
def app(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    monkeypatch.setattr(recorder, "_recorder", None)
    app = Celery("guarded", broker="memory://", set_as_current=False)
    worker._connect()
    yield app
    for signal, handler in worker._HANDLERS.items():
        signal.disconnect(dispatch_uid=f"onebeat.{handler.__name__}")
    app.close()


def request(row: Occurrence, **values: Any) -> dict[str, Any]:
    """What a worker makes of a message."""
    key = str(row.celery_task_id)
    headers = {"onebeat_task": row.task_uid, "onebeat_due_at": row.due_at.isoformat(), "onebeat_run": 0}
    return {"id": key, "root_id": key, "retries": 0, "hostname": "w@h", "delivery_info": {}, **headers, **values}


def run(task: Any, row: Occurrence, **values: Any) -> Any:
    """One delivery of the message of an occurrence."""
    given = request(row, **values)
    return build_tracer(task.name, task, app=task.app)(given["id"], (), {}, given)


@pytest.fixture
def row(bench: Bench) -> Occurrence:
    return Occurrence.objects.create(
        task_id=1, task_name="t", due_at=at(0), state="sent", celery_task_id=uuid.uuid4(), decided_at=at(0)
    )


def counting(app: Celery, **options: Any) -> tuple[Any, list[int]]:
    """A task, and a list that grows when its body runs."""
    ran: list[int] = []

    @app.task(name="counting", shared=False, **options)
    def body() -> None:
        ran.append(1)

    return body, ran


def without_the_table() -> None:
    sql("ALTER TABLE onebeat_occurrence RENAME TO onebeat_elsewhere")


def with_the_table() -> None:
    sql("ALTER TABLE onebeat_elsewhere RENAME TO onebeat_occurrence")


def told(row: Occurrence) -> tuple[str, str, int]:
    row.refresh_from_db()
    return str(row.state), row.outcome, row.duplicate_deliveries


def test_an_outage_fails_no_task_and_is_told_once(
    app: Celery, row: Occurrence, caplog: pytest.LogCaptureFixture
) -> None:
    body, ran = counting(app)
    without_the_table()
    for _ in range(3):
        assert run(body, row).info is None
    assert len(ran) == 3
    with_the_table()
    run(body, row)
    assert told(row) == ("succeeded", "success", 3)  # what could not be written has waited
    assert [line.message[:46] for line in caplog.records if line.name == "onebeat"] == [
        "outcomes of tasks cannot be recorded for now: ",
        "outcomes of tasks are recorded again; 0 were d",
    ]


@pytest.mark.parametrize("choice", ["run", "raise"])
def test_the_guard_without_a_database(
    app: Celery, row: Occurrence, settings: Any, caplog: pytest.LogCaptureFixture, choice: str
) -> None:
    settings.ONEBEAT = {"guard_without_database": choice}
    body, ran = counting(app, base=Guarded)
    without_the_table()
    failed = run(body, row).info is not None
    with_the_table()
    assert (len(ran), failed) == ((1, False) if choice == "run" else (0, True))
    assert ("runs unguarded" in caplog.text) == (choice == "run")


def test_without_signals_only_guarded_tasks_are_recorded(app: Celery, row: Occurrence, settings: Any) -> None:
    settings.ONEBEAT = {"worker_signals": False}
    plain, ran = counting(app)
    run(plain, row)
    assert (told(row), len(ran)) == (("sent", "", 0), 1)
    signals.task_unknown.send(sender=None, message=SimpleNamespace(headers=request(row)), exc=None, name="x", id="y")
    assert told(row) == ("sent", "", 0)
    again = Celery("guarded", broker="memory://", set_as_current=False)
    guarded, ran = counting(again, base=Guarded)
    run(guarded, row)
    run(guarded, row)
    assert (told(row), len(ran)) == (("succeeded", "success", 1), 1)


def test_a_dead_connection_is_replaced(app: Celery, row: Occurrence) -> None:
    """The server has closed it; the start of an attempt must not depend on that."""
    if connection.vendor == "sqlite":
        pytest.skip("a file has no server")
    body, ran = counting(app, base=Guarded)
    connection.ensure_connection()
    connection.connection.close()
    run(body, row)
    assert (told(row), len(ran)) == (("succeeded", "success", 0), 1)


def test_an_eager_run_passes(app: Celery, row: Occurrence) -> None:
    body, ran = counting(app, base=Guarded)
    for _ in range(2):
        body.apply(headers=request(row))
    assert (told(row), len(ran)) == (("sent", "", 0), 2)


def test_a_guarded_app_guards_every_kind_of_task(app: Celery, row: Occurrence) -> None:
    """Also one with a base and a `before_start` of its own, which still runs; other apps are left alone."""
    began: list[int] = []

    class Own(Task):  # type: ignore[type-arg]
        def before_start(self, *args: Any) -> None:
            began.append(1)

    _, ran = counting(app, base=Own, restart_after=60)
    body = app.tasks["counting"]
    other = Celery("other", broker="memory://", set_as_current=False)
    counting(other)
    assert guard(app, restart_after=30) is app
    for each in (app, other, app):
        guarding._guard_all(sender=SimpleNamespace(app=each))
    signals.worker_init.disconnect(dispatch_uid="onebeat.guard")
    for _ in range(2):
        run(body, row)
    assert (len(ran), len(began), told(row)) == (1, 1, ("succeeded", "success", 1))
    assert type(body).__mro__.count(Guarded) == 1
    assert not isinstance(other.tasks["counting"], Guarded)
    assert guarding.restart_after(body) == 60
    assert guarding.restart_after(app.tasks["celery.backend_cleanup"]) == 30


def test_a_guard_for_an_app_refuses_a_time_that_means_nothing() -> None:
    with pytest.raises(ValueError, match="restart_after must be above zero"):
        guard(Celery("never", set_as_current=False), restart_after=0)


def test_a_copy_that_cannot_be_sent_again_goes_back_to_the_broker(app: Celery, row: Occurrence) -> None:
    """Its message is all that would start the attempt again, and the broker has it still (with `acks_late`)."""
    body, ran = counting(app, base=Guarded, restart_after=60)
    Occurrence.objects.update(state="started", attempt=0, start_token=7, started_at=at(0))
    app.conf.task_create_missing_queues = False
    rejected = run(body, row, delivery_info={"exchange": "", "routing_key": "nowhere"}).info
    assert (rejected.state, rejected.retval.requeue, ran) == ("REJECTED", True, [])
    assert told(row) == ("started", "", 0)


def test_a_task_that_its_worker_cancelled_may_start_again(app: Celery, row: Occurrence) -> None:
    """Celery cancels what runs when it has lost its broker, if it is told to, and says it with a retry of its own."""
    body, _ = counting(app, base=Guarded)
    Occurrence.objects.update(state="started", attempt=0, start_token=7, started_at=at(0))
    signals.task_retry.send(body, request=Context(request(row)), einfo=None)
    assert told(row) == ("started", "requeued", 0)
    run(body, row)
    assert told(row) == ("succeeded", "success", 0)


def test_what_celery_tells_of_messages_it_cannot_run(app: Celery, row: Occurrence) -> None:
    body, _ = counting(app)
    message = SimpleNamespace(headers=request(row, retries=1))
    signals.task_rejected.send(sender=None, message=message, exc=ValueError("no body"))
    row.refresh_from_db()
    assert (row.state, row.outcome, row.error) == ("failed", "invalid", "ValueError: no body")
    signals.task_internal_error.send(body, request=request(row, retries=2), exception=OSError("disk"))
    row.refresh_from_db()
    assert (row.state, row.outcome, row.error) == ("failed", "failure", "OSError: disk")


def test_settings() -> None:
    assert conf.problems({"guard_without_database": "raise", "worker_signals": False}) == []
    (wrong,) = conf.problems({"guard_without_database": "stop"})
    assert wrong == "guard_without_database must be 'run' or 'raise', not 'stop'"
