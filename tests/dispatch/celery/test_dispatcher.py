"""What a message carries, seen as a worker sees it: published through Celery's own transport in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from celery import Celery, Task
from kombu import Connection, Exchange, Message, Queue

from onebeat.celery import message_attempt
from onebeat.core.attempts import Attempt
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.models import Occurrence
from onebeat.models.instants import from_utc
from tests.engine.kit import Bench, at, clocked, every, ledger, options, set_task, task


def add(x: float, y: float) -> float:
    return x + y


Post = Callable[[str], list[Message]]


@pytest.fixture
def app() -> Iterator[Celery]:
    app = Celery("post", broker="memory://", set_as_current=False)
    app.conf.task_queues = [
        Queue("celery", Exchange("celery"), routing_key="celery"),
        Queue("mail", Exchange("mail"), routing_key="mail"),
        Queue("key", Exchange("keyed", type="topic"), routing_key="a.*"),
    ]
    app.conf.task_default_queue = "celery"
    yield app
    app.close()


@pytest.fixture
def post(app: Celery, bench: Bench) -> Post:
    """What is in a queue."""
    connection: Connection = app.connection_for_read()
    queues = {queue.name: queue(connection.default_channel) for queue in app.conf.task_queues}
    for queue in queues.values():
        queue.declare()
        queue.purge()

    def take(name: str) -> list[Message]:
        found = []
        while (message := queues[name].get(no_ack=True)) is not None:
            found.append(message)
        return found

    bench.engine.parts.dispatcher = CeleryDispatcher(app)
    return take


def test_headers_and_body(bench: Bench, post: Post) -> None:
    one = task("report", args='["a", 1]', kwargs='{"full": true}', headers='{"tenant": "x"}', interval=every(10))
    bench.work(10)
    (message,) = post("celery")
    (row,) = Occurrence.objects.all()
    headers = message.headers
    assert headers["task"] == one.task
    assert headers["id"] == str(row.celery_task_id)
    assert headers["tenant"] == "x"
    assert headers["periodic_task_name"] == "report"
    assert headers["onebeat_task"] == row.task_uid
    assert datetime.fromisoformat(headers["onebeat_due_at"]) == at(10)
    assert headers["onebeat_run"] == 0
    assert headers["expires"] is None
    args, kwargs, _ = message.decode()
    assert (args, kwargs) == (["a", 1], {"full": True})


def test_headers_of_the_task_do_not_replace_ours(bench: Bench, post: Post) -> None:
    """Nor Celery's, nor do its options: such a row is from before that was refused, or from another hand."""
    forged = dict.fromkeys(("id", "root_id", "parent_id", "group", "lang", "origin", "expires", "eta"), "forged")
    forged |= {"task": "a.b", "retries": 7, "periodic_task_name": "forged", "onebeat_task": 0}
    one = task(interval=every(10))
    set_task(one, headers=json.dumps({**forged, "tenant": "x", "shadow": "shown"}))
    extra = {"task_id": "forged", "root_id": "forged", "countdown": 60, "headers": {"id": "forged"}}
    options(one, extra=json.dumps({**extra, "time_limit": 5}))
    bench.work(10)
    (message,) = post("celery")
    headers, row = message.headers, Occurrence.objects.get()
    assert {name for name, value in forged.items() if headers[name] == value} == set()
    assert headers["id"] == headers["root_id"] == message.properties["correlation_id"] == str(row.celery_task_id)
    assert (headers["periodic_task_name"], headers["onebeat_task"], headers["retries"]) == ("t", row.task_uid, 0)
    assert (headers["tenant"], headers["shadow"], headers["timelimit"]) == ("x", "shown", [5, None])


def test_routing(bench: Bench, post: Post) -> None:
    task("queue", queue="mail", interval=every(10), priority=7)
    task("exchange", exchange="mail", routing_key="mail", interval=every(10))
    task("key", exchange="keyed", routing_key="a.b", interval=every(10))
    task("empty", queue="", exchange="", routing_key="", interval=every(10), priority=0)
    bench.work(10)
    names = {queue: sorted(one.headers["periodic_task_name"] for one in post(queue)) for queue in ("celery", "key")}
    assert names == {"celery": ["empty"], "key": ["key"]}
    found = {one.headers["periodic_task_name"]: one for one in post("mail")}
    assert sorted(found) == ["exchange", "queue"]
    assert found["queue"].properties["priority"] == 7


def test_a_queue_that_nobody_has_defined_is_refused_and_stops_nothing(bench: Bench, app: Celery, post: Post) -> None:
    app.conf.task_create_missing_queues = False
    lost = task("lost", queue="nowhere", interval=every(10))
    task("good", interval=every(10))
    bench.work(10)
    assert [one.headers["periodic_task_name"] for one in post("celery")] == ["good"]
    assert ledger(lost) == [(10, "skipped", "refused")]


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"expire_seconds": 30}, 40),
        ({"expires": 35}, 35),
        ({"expires": 35, "expire_seconds": 30}, 35),
        ({"expires": 3500, "expire_seconds": 30}, 40),
        ({"expire_seconds": 0}, 10),
    ],
)
def test_a_message_ends_with_its_task_or_its_time_to_live(
    bench: Bench, post: Post, fields: dict[str, int], end: int
) -> None:
    one = task(interval=every(10))
    both = {name: from_utc(at(value)) if name == "expires" else value for name, value in fields.items()}
    set_task(one, **both)
    bench.work(10)
    (message,) = post("celery")
    assert datetime.fromisoformat(message.headers["expires"]) - at(end) < timedelta(milliseconds=1)


def test_a_registered_task_is_sent_through_its_own_apply_async(bench: Bench, app: Celery, post: Post) -> None:
    class Own(Task):  # type: ignore[misc]
        def apply_async(self, *args: Any, **options: Any) -> Any:
            options["headers"] = {**options["headers"], "seen": "yes"}
            return super().apply_async(*args, **options)

    app.task(name="tests.engine.add", base=Own, shared=False)(add)
    for number in range(60):
        task(f"t{number}", args="[1, 2]", interval=every(10))
    bench.work(10)
    assert [one.headers["seen"] for one in post("celery")] == ["yes"] * 60


def test_arguments_that_the_task_does_not_take_are_refused(bench: Bench, app: Celery, post: Post) -> None:
    app.task(name="tests.engine.add", shared=False)(add)
    one = task("bad", args="[1]", interval=every(10))
    task("good", args="[1, 2]", interval=every(10))
    bench.work(10)
    assert [one.headers["periodic_task_name"] for one in post("celery")] == ["good"]
    assert ledger(one) == [(10, "skipped", "refused")]
    assert "TypeError" in Occurrence.objects.get(state="skipped").detail


@pytest.mark.parametrize("number", [3, 120])
def test_few_and_many_at_once(bench: Bench, post: Post, number: int) -> None:
    for each in range(number):
        task(f"t{each}", clocked=clocked(at(5)))
    bench.work(5)
    found = post("celery")
    ids = [one.headers["id"] for one in found]
    assert len(ids) == len(set(ids)) == number
    # However a message was made, a worker knows which attempt it is.
    named = [message_attempt.of(one.headers) for one in found]
    rows = {Attempt(row.task_uid, row.due_at, row.run, 0) for row in Occurrence.objects.all()}
    assert set(named) == rows
    assert Occurrence.objects.filter(state="sent").count() == number
