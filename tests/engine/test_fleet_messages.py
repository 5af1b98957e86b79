"""What is in the messages: every option of a task arrives, whichever way it goes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.engine.fleet import ADD, LIMIT, Fleet, Place, Spawn, fleets
from tests.processes import eventually
from tests.scratch import Templates

pytestmark = [pytest.mark.broker, pytest.mark.timeout(200)]

IMPORTS = {"ONEBEAT_TEST_CELERY": json.dumps({"CELERY_IMPORTS": ["tests.engine.fleet_tasks"]})}
ENDS = datetime(2100, 1, 1, tzinfo=UTC)


def make_one_of_each(queue: str) -> int:
    """Tasks due now, one for each option; messages go to `queue` or to the exchange of that name."""
    from django.conf import settings
    from django.utils import timezone

    from onebeat.models import ClockedSchedule, PeriodicTask

    clocked, _ = ClockedSchedule.objects.get_or_create(clocked_time=timezone.now())
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "arguments": {"args": '["a", 2]', "kwargs": '{"deep": {"er": [null]}}', "task": "nobody.registered.this"},
        "queue": {"queue": f"{queue}-other"},
        "exchange": {"exchange": f"{queue}-exchange", "routing_key": "some.key"},
        "priority": {"priority": 7},
        "headers": {"headers": '{"tenant": "a", "deep": {"er": 1}}'},
        "expires": {"expires": ENDS if settings.USE_TZ else ENDS.replace(tzinfo=None)},
        "expire_seconds": {"expire_seconds": 90},
        "stamped": {"task": "tests.engine.fleet_tasks.stamped", "args": "[]"},
    }
    for name, option in options.items():
        PeriodicTask.objects.create(name=name, clocked=clocked, one_off=True, **{**ADD, **option})
    return len(options)


def declare(fleet: Fleet, stack: ExitStack) -> None:
    """The queue behind the exchange, as a worker would declare it."""
    from kombu import Connection, Exchange, Queue

    queue = fleet.post.queue
    with Connection(fleet.post.url) as connection:
        Queue(f"{queue}-exchange", Exchange(f"{queue}-exchange"), "some.key").bind(connection.default_channel).declare()
    for each in (f"{queue}-exchange", f"{queue}-other"):
        stack.callback(fleet.post.kind.release, fleet.post.url, each)


def arrived(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    """(queue it was in, message) of all that the broker has."""
    from kombu import Connection, Queue

    with Connection(fleet.post.url) as connection:
        for suffix in ("", "-other", "-exchange"):
            queue = Queue(fleet.post.queue + suffix, channel=connection.default_channel)
            while (message := queue.get(no_ack=True, accept=["json"])) is not None:
                yield suffix, message


def check(fleet: Fleet) -> None:
    rows = {row.task: row for row in fleet.ledger()}
    found = {message.headers["periodic_task_name"]: (suffix, message) for suffix, message in arrived(fleet)}
    assert found.keys() == rows.keys()
    for name, (_, message) in found.items():
        headers, row = message.headers, rows[name]
        assert headers["id"] == row.message_id and headers["onebeat_task"]
        assert (headers["onebeat_due_at"], headers["onebeat_run"]) == (row.due_at.isoformat(), 0)
    elsewhere = {name: suffix for name, (suffix, _) in found.items() if suffix}
    assert elsewhere == {"queue": "-other", "exchange": "-exchange"}
    assert found["exchange"][1].delivery_info["routing_key"] == "some.key"
    assert found["priority"][1].properties["priority"] == 7
    assert found["plain"][1].properties["priority"] in (0, None)
    assert found["plain"][1].headers["expires"] is None
    assert (found["headers"][1].headers["tenant"], found["headers"][1].headers["deep"]) == ("a", {"er": 1})
    arguments = found["arguments"][1]
    assert arguments.headers["task"] == "nobody.registered.this"
    assert arguments.decode()[:2] == [["a", 2], {"deep": {"er": [None]}}]
    assert datetime.fromisoformat(found["expires"][1].headers["expires"]) == ENDS
    sent_at = rows["expire_seconds"].sent_at
    assert sent_at is not None
    left = datetime.fromisoformat(found["expire_seconds"][1].headers["expires"]) - sent_at
    assert timedelta(seconds=60) < left <= timedelta(seconds=90)
    assert found["stamped"][1].decode()[1] == {"stamp": "by apply_async"}


def test_every_option_arrives(templates: Templates, spawn: Spawn) -> None:
    """One by one and in a batch; by both kinds of scheduler; with and without USE_TZ."""
    ways = (
        (Place("postgresql", "redis"), "beat", 50),
        (Place("sqlite", "redis", use_tz="0"), "run", 1),
        (Place("mariadb", "rabbitmq"), "run", 50),
        (Place("postgresql", "rabbitmq"), "beat", 1),
    )
    with ExitStack() as stack:
        found = stack.enter_context(fleets(templates, spawn, *(place for place, _, _ in ways)))
        kinds = {place: (kind, plain_below) for place, kind, plain_below in ways}
        for fleet in found:
            kind, plain_below = kinds[fleet.place]
            declare(fleet, stack)
            fleet.settings = {"plain_below": plain_below}
            fleet.env = IMPORTS
            fleet.start(kind)
        for fleet in found:
            fleet.wait_able()
            count = fleet.make(make_one_of_each, fleet.post.queue)
            eventually(partial(fleet.finished, count), LIMIT, f"all messages on {fleet.place}")
            fleet.stop()
            check(fleet)
