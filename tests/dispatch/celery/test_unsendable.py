"""No message, whatever it holds, takes its neighbours along: each of those arrives once, on each broker.

A property over headers, priorities, routing keys, options and bodies that kombu, py-amqp or the broker may refuse.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onebeat.dispatch.base import Accepted, Message, Refused, Unsent
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from tests.scratch import Post

pytestmark = pytest.mark.broker

#: How many calls a good message may need: one beside the bad one, and two alone.
CALLS = 3

lengths = st.sampled_from([0, 1, 127, 128, 255, 256, 300, 5_000, 140_000, 200_000])
texts = st.builds(lambda letter, length: letter * length, st.sampled_from("aé☃\0\ud800"), lengths)
numbers = st.sampled_from([0, -1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 2**80])


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


values = st.one_of(
    texts,
    numbers,
    st.none(),
    st.booleans(),
    st.floats(),
    st.lists(numbers, max_size=2),
    st.sampled_from([5, 60, 400]).map(deep),
)
headers = st.dictionaries(st.one_of(texts, st.sampled_from(["CC", "BCC", "x-delay", "x"])), values, max_size=2)
options = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.sampled_from([0, 9, 10, 255, 256, 300, -1, 2**40]),
        "routing_key": texts,
        "exchange": st.one_of(texts, st.just("nowhere")),
        "expiration": st.sampled_from(["abc", -5, 1e12]),
        "delivery_mode": st.sampled_from([1, 2, 3, 7, "x"]),
        "serializer": st.sampled_from(["json", "nobody", "yaml"]),
        "compression": st.sampled_from(["zlib", "nobody"]),
        "reply_to": texts,
        "user_id": st.sampled_from(["guest", "somebody"]),
        "shadow": texts,
    },
)


@pytest.fixture
def dispatcher(broker: Post) -> Iterator[CeleryDispatcher]:
    app: Any = Celery("unsendable", broker=broker.url, set_as_current=False)
    app.conf.update(task_default_queue=broker.queue)
    found = CeleryDispatcher(app, plain_below=3)
    yield found
    found.close()


def good() -> Message:
    return Message(str(uuid.uuid4()), "nobody.knows", [1], {}, {"headers": {"onebeat_task": 1}})


@pytest.mark.parametrize("wide", [False, True], ids=["headers and priority", "any option"])
def test_a_bad_message_takes_nobody_along(broker: Post, dispatcher: CeleryDispatcher, wide: bool) -> None:
    @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        given_options = data.draw(options) if wide else {}
        body = data.draw(values)
        bad = Message(str(uuid.uuid4()), "nobody.knows", [body], {}, {**given_options, "headers": data.draw(headers)})
        neighbours = [good() for _ in range(6)]
        place = data.draw(st.integers(0, 6))
        waiting = [*neighbours[:place], bad, *neighbours[place:]]
        outcomes: dict[str, Any] = {}
        for _ in range(CALLS):
            found = dispatcher.publish(waiting)
            outcomes.update({message.id: outcome for message, outcome in zip(waiting, found, strict=True)})
            waiting = [message for message in waiting if isinstance(outcomes[message.id], Unsent)]
            if not waiting:
                break
        assert isinstance(outcomes[bad.id], Accepted | Refused), outcomes[bad.id]
        assert {type(outcomes[message.id]) for message in neighbours} == {Accepted}
        arrived = Counter(message.headers["id"] for message in broker.drain())
        assert {message.id: arrived[message.id] for message in neighbours} == {message.id: 1 for message in neighbours}

    holds()
