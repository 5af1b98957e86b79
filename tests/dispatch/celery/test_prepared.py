"""Messages that are filled in are what Celery would have sent, and where that is not sure, Celery sends them."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import Celery, Task, signals
from kombu import Producer

from onebeat.dispatch.base import Accepted, Message, Refused
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.dispatch.celery.prepared import Kind, Kinds
from tests import services

pytestmark = pytest.mark.broker

QUEUES = ("celery", "mail", "fast")


class Post:
    """A Celery app and what it puts into a Redis of its own."""

    def __init__(self, url: str) -> None:
        self.server = redis.Redis.from_url(url)
        self.app: Any = Celery("prepared", broker=url, set_as_current=False)
        self.app.conf.update(task_routes={"mailed.*": {"queue": "mail"}}, task_create_missing_queues=True)

        @self.app.task(name="known", shared=False)
        def known(x: int, y: int = 0) -> None: ...

        @self.app.task(
            name="mailed.known", shared=False, time_limit=7, serializer="json", ignore_result=True, priority=3
        )
        def mailed(*args: Any, **kwargs: Any) -> None: ...

    def send(self, messages: list[Message], *, prepare: bool = True) -> list[dict[str, Any]]:
        dispatcher = CeleryDispatcher(self.app, plain_below=1)
        assert dispatcher.ready()
        if not prepare:
            dispatcher._kinds = None
        self.outcomes = dispatcher.publish(messages)
        dispatcher.close()
        return self.take()

    def take(self) -> list[dict[str, Any]]:
        """Every message in every list, whatever its priority, without what is random in it."""
        found = []
        for key in sorted(self.server.keys()):
            if self.server.type(key) != b"list":
                continue
            for raw in self.server.lrange(key, 0, -1):
                message = json.loads(raw)
                del message["properties"]["delivery_tag"]
                found.append({**message, "body": json.loads(base64.b64decode(message["body"])), "list": key.decode()})
            self.server.delete(key)
        return sorted(found, key=lambda one: str(one["headers"]["id"]))


@pytest.fixture
def post() -> Iterator[Post]:
    broker = next((one for one in services.brokers() if one.name == "redis"), None)
    if broker is None:
        pytest.skip("no Redis here")
    url = broker.fresh_broker_url()
    yield Post(url)
    broker.release(url)


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the messages that were filled in."""
    if not hasattr(Producer, "batch"):
        pytest.skip("kombu has no batches before 5.7, and without them every message goes through Celery")
    seen: list[str] = []
    publish = Kind.publish

    def spy(self: Kind, producer: Any, message: Message, way: Any) -> None:
        seen.append(message.id)
        publish(self, producer, message, way)

    monkeypatch.setattr(Kind, "publish", spy)
    return seen


def message(task: str = "known", *args: Any, headers: dict[str, Any] | None = None, **options: Any) -> Message:
    kwargs = options.pop("kwargs", {})
    return Message(str(uuid.uuid4()), task, list(args or (1,)), kwargs, {**options, "headers": headers or {"mine": 1}})


def mixed() -> list[Message]:
    return [
        message("known", 1),
        message("known", 2, kwargs={"y": 3}, headers={"id2": "x", "periodic_task_name": "déjà"}),
        message("known", 2, priority=9),
        message("known", 2, queue="fast"),
        message("mailed.known", "it's", "a" * 3000, {"deep": [1, None, {"k": True}]}),
        message("mailed.known", 5, queue="fast"),
        message("nobody.knows", 1, 2, kwargs={"z": "ü"}),
        message("mailed.unknown", 1),
        message("known", 2, exchange="mail", routing_key="mail"),
    ]


def test_they_are_what_celery_sends(post: Post, filled: list[str]) -> None:
    messages = mixed() + mixed()
    plain = post.send(messages, prepare=False)
    assert not filled
    prepared = post.send(messages)
    assert len(filled) == len(messages) == len(prepared)
    for one, other in zip(plain, prepared, strict=True):
        assert one == other
    assert {one["list"] for one in prepared} > set(QUEUES)


def test_arguments_that_the_task_does_not_take_are_refused_each_by_itself(post: Post) -> None:
    good, bad = [message(), message()], [message("known", 1, 2, 3), message("known", kwargs={"no": 1})]
    sent = post.send([good[0], bad[0], bad[1], good[1]])
    assert [type(one) for one in post.outcomes] == [Accepted, Refused, Refused, Accepted]
    assert {one["headers"]["id"] for one in sent} == {one.id for one in good}
    # Also when it is the first of its kind.
    assert not post.send([bad[0]])
    assert [type(one) for one in post.outcomes] == [Refused]


def patched(post: Post, patch: pytest.MonkeyPatch) -> None:
    before = Task.apply_async

    def apply_async(self: Any, *args: Any, **options: Any) -> Any:
        options["headers"] = {**options["headers"], "traced": "yes"}
        return before(self, *args, **options)

    patch.setattr(Task, "apply_async", apply_async)


def patched_app(post: Post, patch: pytest.MonkeyPatch) -> None:
    before = post.app.send_task

    def send_task(*args: Any, **options: Any) -> Any:
        options["headers"] = {**options["headers"], "traced": "yes"}
        return before(*args, **options)

    patch.setattr(post.app, "send_task", send_task)


def routed(post: Post, patch: pytest.MonkeyPatch) -> None:
    def route(name: str, args: Any, kwargs: Any, options: dict[str, Any], **more: Any) -> None:
        options["headers"]["traced"] = "yes"

    post.app.conf.task_routes = (route,)


def test_receivers_of_publish_signals_are_told_as_celery_tells_them(post: Post, filled: list[str]) -> None:
    """Each message once, with what Celery would tell; what one writes is in its own message alone."""
    seen: list[dict[str, Any]] = []

    def before(**given: Any) -> None:
        seen.append({"signal": "before", **given, "headers": dict(given["headers"])})
        given["headers"]["traced"] = given["headers"]["id"]
        given["headers"]["stamps"][given["headers"]["id"]] = "mine"
        given["properties"]["priority"] = 7

    def after(**given: Any) -> None:
        seen.append({"signal": "after", **given})

    signals.before_task_publish.connect(before)
    signals.after_task_publish.connect(after)
    messages = mixed()
    try:
        plain, seen_plain = post.send(messages, prepare=False), list(seen)
        seen.clear()
        prepared = post.send(messages)
    finally:
        signals.before_task_publish.disconnect(before)
        signals.after_task_publish.disconnect(after)
    assert len(filled) == len(messages)
    assert prepared == plain
    assert [one["headers"]["traced"] for one in prepared] == [one["headers"]["id"] for one in prepared]
    assert [sorted(one) for one in seen] == [sorted(one) for one in seen_plain]
    for one, other in zip(seen, seen_plain, strict=True):
        # Entities are bound to a channel of their own connection.
        for name in one.keys() - {"declare", "signal"}:
            assert one[name] == other[name], name
        assert [str(each.name) for each in one.get("declare") or ()] == [
            str(each.name) for each in other.get("declare") or ()
        ]


@pytest.mark.parametrize("changed", [patched, patched_app, routed], ids=lambda one: one.__name__)
def test_whoever_listens_or_patches_sees_each_message(
    post: Post, filled: list[str], monkeypatch: pytest.MonkeyPatch, changed: Callable[[Post, pytest.MonkeyPatch], None]
) -> None:
    changed(post, monkeypatch)
    sent = post.send([message(), message()])
    assert [one["headers"].get("traced") for one in sent] == ["yes", "yes"]
    assert not filled


def test_an_end_of_life_goes_through_celery(post: Post, filled: list[str]) -> None:
    post.app.tasks["known"].expires = 60
    sent = post.send([message(), message(), message("nobody.knows")])
    assert [one["headers"]["expires"] is not None for one in sent if one["headers"]["task"] == "known"] == [True, True]
    assert len(filled) == 1


def test_kinds_are_bounded(post: Post) -> None:
    dispatcher = CeleryDispatcher(post.app)
    assert dispatcher.ready()
    kinds = Kinds(post.app, dispatcher._producer)
    for number in range(1500):
        kinds.of(message(queue=f"q{number % 3}", priority=number))
    assert 0 < len(kinds._known) <= 1000
    dispatcher.close()


def test_a_task_that_runs_where_it_is_sent_runs_once() -> None:
    """With `task_always_eager` nothing may be sent to find out what would be."""
    app: Any = Celery("eager", broker="memory://", set_as_current=False)
    app.conf.task_always_eager = True
    ran: list[int] = []

    @app.task(name="note", shared=False)
    def note(number: int) -> None:
        ran.append(number)

    dispatcher = CeleryDispatcher(app, plain_below=1)
    dispatcher.publish([Message(str(uuid.uuid4()), "note", [n], {}) for n in range(4)])
    dispatcher.close()
    assert ran == [0, 1, 2, 3]
