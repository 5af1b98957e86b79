"""Many messages to RabbitMQ with one wait: each keeps the broker's own answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from kombu import Connection, Exchange, Queue

from onebeat.dispatch.base import Accepted, Deferred, Message, Refused
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from tests import services

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def rabbit() -> services.Broker:
    broker = next((one for one in services.brokers() if one.name == "rabbitmq"), None)
    if broker is None:
        pytest.skip("no RabbitMQ here")
    return broker


@pytest.fixture
def queue(rabbit: services.Broker) -> Iterator[str]:
    name = f"onebeat-{uuid.uuid4().hex[:12]}"
    yield name
    rabbit.release(rabbit.url, name, f"{name}-small")


@pytest.fixture
def dispatcher(rabbit: services.Broker, queue: str) -> Iterator[CeleryDispatcher]:
    app: Any = Celery("confirmed", broker=rabbit.url, set_as_current=False)
    app.conf.update(task_default_queue=queue)
    found = CeleryDispatcher(app, plain_below=5)
    yield found
    found.close()


def messages(count: int, **options: Any) -> list[Message]:
    return [Message(str(uuid.uuid4()), "nobody.knows", [n], {}, {**options, "headers": {}}) for n in range(count)]


def test_all_are_confirmed_and_arrive_once_in_order(
    rabbit: services.Broker, queue: str, dispatcher: CeleryDispatcher
) -> None:
    for number in (300, 1, 7):  # twice on the same channel, and once one by one between
        sent = messages(number)
        assert set(map(type, dispatcher.publish(sent))) == {Accepted}
        assert [one.headers["id"] for one in rabbit.drain(rabbit.url, queue)] == [one.id for one in sent]


def test_what_a_full_queue_refuses_waits_and_the_others_are_sent(
    rabbit: services.Broker, queue: str, dispatcher: CeleryDispatcher
) -> None:
    small = f"{queue}-small"
    limits = {"x-max-length": 3, "x-overflow": "reject-publish"}
    full = Queue(small, Exchange(small, "direct"), small, queue_arguments=limits)
    dispatcher.app.amqp.queues.add(full)
    with Connection(rabbit.url) as connection:
        full(connection.default_channel).declare()
    mixed = [*messages(10, queue=small), *messages(5)]
    outcomes = dispatcher.publish(mixed)
    refused = [one.id for one, outcome in zip(mixed, outcomes, strict=True) if isinstance(outcome, Deferred)]
    taken = [one.id for one, outcome in zip(mixed, outcomes, strict=True) if isinstance(outcome, Accepted)]
    assert len(refused) + len(taken) == 15 and refused
    arrived = {one.headers["id"] for name in (small, queue) for one in rabbit.drain(rabbit.url, name)}
    assert arrived == set(taken)
    # The channel goes on: what was refused is not remembered.
    assert set(map(type, dispatcher.publish(messages(5)))) == {Accepted}


def test_a_message_that_closes_the_channel_takes_no_other_along(
    rabbit: services.Broker, queue: str, dispatcher: CeleryDispatcher
) -> None:
    lost = f"{queue}-nowhere"
    bad = Message(str(uuid.uuid4()), "nobody.knows", [], {}, {"exchange": lost, "routing_key": "x", "headers": {}})
    good = messages(8)
    batch = [*good[:4], bad, *good[4:]]
    outcomes = dispatcher.publish(batch)
    assert {one.id for one, outcome in zip(batch, outcomes, strict=True) if isinstance(outcome, Refused)} == {bad.id}
    assert {type(outcome) for one, outcome in zip(batch, outcomes, strict=True) if one is not bad} == {Accepted}
    arrived = [one.headers["id"] for one in rabbit.drain(rabbit.url, queue)]
    assert sorted(arrived) == sorted(one.id for one in good)
