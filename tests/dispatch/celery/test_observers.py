"""Sentry and OpenTelemetry, the real packages: each message has a trace of its own, and a flush is one exchange."""

from __future__ import annotations

import os
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import Celery, Task, signals
from kombu import Producer
from redis.connection import AbstractConnection

from onebeat.celery import hooks
from onebeat.celery.beat import Scheduler
from onebeat.dispatch.base import Accepted, Message
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.dispatch.celery.prepared import Kind
from tests import services
from tests.processes import run_python

pytestmark = pytest.mark.broker

MANY = 200


@pytest.fixture
def url() -> Iterator[str]:
    if not hasattr(Producer, "batch"):
        pytest.skip("kombu has no batches before 5.7")
    broker = next((one for one in services.brokers() if one.name == "redis"), None)
    if broker is None:
        pytest.skip("no Redis here")
    url = broker.fresh_broker_url()
    yield url
    broker.release(url)


def new_app(url: str) -> Any:
    app: Any = Celery("observed", broker=url, set_as_current=False)

    @app.task(name="known", shared=False)
    def known(x: int) -> None: ...

    return app


def messages(**headers: Any) -> list[Message]:
    given = {"periodic_task_name": "one", **headers}
    return [
        Message(str(uuid.uuid4()), "known" if n % 2 else "elsewhere", [n], {}, {"headers": dict(given)})
        for n in range(MANY)
    ]


def sent(app: Any, way: str, **headers: Any) -> dict[str, Any]:
    """Send many; what arrived, how many were filled in, and how often Redis was asked."""
    filled: list[str] = []
    publish = Kind.publish

    def spy(self: Kind, producer: Any, message: Message, *rest: Any) -> None:
        filled.append(message.id)
        publish(self, producer, message, *rest)

    Kind.publish = spy  # type: ignore[method-assign]
    dispatcher = hooks.dispatcher(Scheduler(app, lazy=True), 50, "default") if way == "beat" else CeleryDispatcher(app)
    assert dispatcher.ready()
    dispatcher.publish(messages(**headers)[:4])  # declared, and what makes the first of a kind
    filled.clear()
    redis.Redis.from_url(app.conf.broker_url).delete("celery")
    written: list[int] = []
    write = AbstractConnection.send_packed_command

    def counted(self: Any, command: Any, *args: Any, **kwargs: Any) -> None:
        written.append(1)
        write(self, command, *args, **kwargs)

    AbstractConnection.send_packed_command = counted  # type: ignore[method-assign]
    outcomes = dispatcher.publish(messages(**headers))
    asked = len(written)
    dispatcher.close()
    with app.connection_for_read() as link:
        queue = link.SimpleQueue("celery")
        arrived = [queue.get(timeout=5) for _ in range(queue.qsize())]
        found = [(one.headers, one.payload[0]) for one in arrived]
        for one in arrived:
            one.ack()
        queue.close()
    accepted = all(type(one) is Accepted for one in outcomes)
    return {
        "found": found,
        "filled": len(filled),
        "asked": asked,
        "accepted": accepted,
        "kind": type(dispatcher).__name__,
    }


def check(seen: dict[str, Any]) -> None:
    assert seen["accepted"]
    assert len(seen["found"]) == MANY
    assert seen["asked"] <= 3, seen["asked"]


def under_sentry(url: str, way: str, headers: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    import sentry_sdk
    from sentry_sdk.integrations.celery import CeleryIntegration

    class Nowhere(sentry_sdk.transport.Transport):
        def capture_envelope(self, envelope: Any) -> None: ...

    app = new_app(url)
    sentry_sdk.init(
        dsn="https://key@localhost/1",
        transport=Nowhere,
        traces_sample_rate=1.0,
        integrations=[CeleryIntegration(**options)],
    )
    seen = sent(app, way, **headers)
    # Beside one that goes through Sentry's own wrappers, as from Celery's beat.
    sentry_sdk.get_isolation_scope()._name = "celery-beat"
    app.send_task("elsewhere", [0], headers={"periodic_task_name": "one", **headers})
    with app.connection_for_read() as link:
        queue = link.SimpleQueue("celery")
        seen["theirs"] = queue.get(timeout=5).headers
        queue.close()
    return seen


def in_child(call: Callable[..., Any], *args: Any) -> Any:
    return run_python({"PYTHONPATH": os.pathsep.join(sys.path)}, call, *args)


WITHOUT_VALUE = re.compile(r"[0-9a-f]{16,}")


def shape(headers: dict[str, Any]) -> dict[str, Any]:
    """Headers without the ids and times that differ from message to message."""
    own = {"id", "root_id", "argsrepr", "origin"}
    return {
        name: shape(value)
        if isinstance(value, dict)
        else "a time"
        if name.endswith(("-time", "-timestamp-s"))
        else WITHOUT_VALUE.sub("#", value)
        if isinstance(value, str)
        else value
        for name, value in headers.items()
        if name not in own
    }


@pytest.mark.parametrize("way", ["beat", "run"])
@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({}, {}),
        ({"baggage": "shop=1"}, {}),
        ({"sentry-propagate-traces": False}, {}),
        ({}, {"propagate_traces": False}),
    ],
    ids=["plain", "baggage", "not this task", "not at all"],
)
def test_under_sentry_each_message_has_a_trace_of_its_own(
    url: str, way: str, headers: dict[str, Any], options: dict[str, Any]
) -> None:
    pytest.importorskip("sentry_sdk")
    seen = in_child(under_sentry, url, way, headers, options)
    check(seen)
    assert seen["filled"] == MANY
    assert seen["kind"] == ("LoggingDispatcher" if way == "beat" else "CeleryDispatcher")
    for one, (number,) in seen["found"]:
        if number % 2 == 0:
            assert shape(one) == shape(seen["theirs"])
    traced = headers.get("sentry-propagate-traces", options.get("propagate_traces", True))
    traces = {one["sentry-trace"][:32] for one, _ in seen["found"]} if traced else set()
    assert len(traces) == (MANY if traced else 0)
    for one, _ in seen["found"] if traced else ():
        assert one["headers"]["sentry-trace"] == one["sentry-trace"]
        assert one["sentry-trace"][:32] in one["baggage"]


def under_opentelemetry(url: str, way: str) -> dict[str, Any]:
    from opentelemetry import trace
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    CeleryInstrumentor().instrument()
    seen = sent(new_app(url), way)
    ended = spans.get_finished_spans()
    seen["spans"] = [f"{one.context.trace_id:032x}" for one in ended if one.name.startswith("apply_async")]
    return seen


@pytest.mark.parametrize("way", ["beat", "run"])
def test_under_opentelemetry_each_message_has_a_trace_of_its_own(url: str, way: str) -> None:
    pytest.importorskip("opentelemetry.instrumentation.celery")
    seen = in_child(under_opentelemetry, url, way)
    check(seen)
    traces = {one["traceparent"].split("-")[1] for one, _ in seen["found"]}
    assert len(traces) == MANY
    assert traces < set(seen["spans"])


def with_a_hook(url: str, way: str) -> dict[str, Any]:
    app = new_app(url)
    seen: list[str] = []

    def noted(headers: dict[str, Any], **kwargs: Any) -> None:
        seen.append(headers["id"])

    def overridden(self: Any, *args: Any, **options: Any) -> Any:
        seen.append(options["task_id"])
        return Task.apply_async(self, *args, **options)

    if way == "receiver":
        signals.before_task_publish.connect(noted)
    else:
        known = app.tasks["known"]
        known.__class__ = type("Own", (type(known),), {"apply_async": overridden})
    found = sent(app, "run")
    return {**found, "seen": len(set(seen))}


@pytest.mark.parametrize("way", ["receiver", "override"])
def test_hooks_are_called_for_each_message_inside_one_exchange(url: str, way: str) -> None:
    seen = in_child(with_a_hook, url, way)
    check(seen)
    # No hook is asked about the others, whose task is not registered here.
    assert seen["seen"] == (MANY + 4 if way == "receiver" else MANY // 2 + 2)
