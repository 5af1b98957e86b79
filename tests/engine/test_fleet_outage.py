"""The broker or the database goes away and comes back: no scheduler ends, nothing is lost, nobody has to help."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial

import pytest

from tests.engine.fleet import (
    LIMIT,
    SECOND,
    Fleet,
    Place,
    Spawn,
    disable,
    fleets,
    make_every_second,
    make_one_offs,
    unaccounted,
)
from tests.processes import eventually
from tests.proof.fleets import judged
from tests.proxy import Proxy
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

TASKS = 200
PLACES = Place("postgresql", "redis", 2), Place("mariadb", "rabbitmq", 2)
KEPT, STOPPED = "every second 0", "every second 1"


def away_from_broker(stack: ExitStack, fleet: Fleet) -> Proxy:
    proxy = stack.enter_context(Proxy(fleet.post.url))
    fleet.env = {"ONEBEAT_TEST_BROKER": proxy.url}
    return proxy


def away_from_database(stack: ExitStack, fleet: Fleet) -> Proxy:
    proxy = stack.enter_context(Proxy(fleet.database.kind.url))
    fleet.env = {"ONEBEAT_TEST_DB": json.dumps({**fleet.database.settings, "HOST": "127.0.0.1", "PORT": proxy.port})}
    return proxy


def test_broker_and_database_away(templates: Templates, spawn: Spawn) -> None:
    """The broker of two fleets is away for 20 s, the database of two others for 10 s. Each one-off is sent, and each
    second of a task is sent or has its reason.

    For the past of an every-second task (policy `latest`) one run is sent, and none if it was disabled meanwhile.
    """
    with ExitStack() as stack:
        lost_broker = stack.enter_context(fleets(templates, spawn, *PLACES))
        lost_database = stack.enter_context(fleets(templates, spawn, *PLACES))
        brokers = [away_from_broker(stack, fleet) for fleet in lost_broker]
        databases = [away_from_database(stack, fleet) for fleet in lost_database]
        both = [*lost_broker, *lost_database]
        for fleet in both:
            fleet.start_all()
        once, starts = [], []
        for fleet in both:
            fleet.wait_able()
            starts.append(fleet.now())
            fleet.make(make_every_second, "every second", 2)
            once.append(fleet.make(make_one_offs, "once", TASKS, 5.0, 25.0))
        for fleet in both:
            eventually(partial(fleet.has_sent, KEPT, 3), LIMIT, f"a few regular runs on {fleet.place}")
        for proxy in brokers + databases:
            proxy.down()
        began = lost_broker[0].now()
        threading.Event().wait(4)  # what was in flight is settled
        for fleet in lost_broker:
            fleet.make(disable, STOPPED)
        for proxies, seconds in (databases, 10), (brokers, 20):
            rest = timedelta(seconds=seconds) - (lost_broker[0].now() - began)
            threading.Event().wait(rest.total_seconds())
            for proxy in proxies:
                proxy.up()
        back = lost_broker[0].now()
        for fleet, names, start in zip(both, once, starts, strict=True):
            disabled = _carries_on(fleet, names)
            kind = "broker" if fleet in lost_broker else "database"
            found = judged(fleet, start, [(kind, began, back)], once=names, every=[KEPT], disabled=disabled)
            assert not found, fleet.place
        for fleet in lost_broker:
            # A coalesced range may begin with the very second in which the broker went.
            away = began + SECOND, back - SECOND
            rows = [one for one in fleet.ledger() if (one.last_due_at or one.due_at) > away[0] and one.due_at < away[1]]
            assert not [row for row in rows if row.state == "sent" and row.task in (KEPT, STOPPED)], fleet.place
            assert "coalesced" in {row.reason for row in rows if row.task == KEPT}
            assert not [row for row in fleet.ledger() if row.task == STOPPED and row.due_at >= back]


def _carries_on(fleet: Fleet, once: list[str]) -> tuple[datetime, datetime]:
    """Wait for the end of all work. Returns between which instants the last of it was switched off."""
    eventually(lambda: fleet.count("state = 'sent' AND task_name LIKE 'once%'") == TASKS, LIMIT, "the one-offs")
    after = len(fleet.sent(KEPT))
    eventually(partial(fleet.has_sent, KEPT, after + 3), LIMIT, f"regular runs again on {fleet.place}")
    before = fleet.now()
    fleet.make(disable, KEPT, STOPPED)
    disabled = before, fleet.now()
    eventually(fleet.finished, LIMIT, f"the end on {fleet.place}")
    fleet.stop()
    # What was sent when the database went could not be recorded: a flush of each scheduler at most.
    assert not fleet.differences(once=once, copies=100 * fleet.place.schedulers), fleet.place
    assert not unaccounted(row for row in fleet.ledger() if row.task == KEPT), fleet.place
    return disabled
