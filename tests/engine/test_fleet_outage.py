"""The broker or the database goes away and comes back: no scheduler ends, nothing is lost, nobody has to help."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from datetime import timedelta

import pytest

from tests.engine.fleet import LIMIT, Place, Spawn, disable, fleets, make_every_second, make_one_offs, unaccounted
from tests.processes import eventually
from tests.proxy import Proxy
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

TASKS = 200


def wait(seconds: float) -> None:
    threading.Event().wait(seconds)


def test_the_broker_away_for_twenty_seconds(templates: Templates, spawn: Spawn) -> None:
    """Then each one-off is sent, an every-second task (policy `latest`) once for the past, a disabled one not at all."""
    with ExitStack() as stack:
        places = Place("postgresql", "redis", 2), Place("mariadb", "rabbitmq", 2)
        found = stack.enter_context(fleets(templates, spawn, *places))
        proxies = [stack.enter_context(Proxy(fleet.post.url)) for fleet in found]
        once = {}
        for fleet, proxy in zip(found, proxies, strict=True):
            fleet.env = {"ONEBEAT_TEST_BROKER": proxy.url}
            fleet.start_all()
        for fleet in found:
            fleet.wait_able()
            fleet.make(make_every_second, "every second", 2)
            eventually(lambda: len(fleet.sent("every second 1")) >= 3, LIMIT, "a few regular runs")
            once[fleet.place] = fleet.make(make_one_offs, "once", TASKS, 2.0, 20.0)
        for proxy in proxies:
            proxy.down()
        went = [fleet.now() + timedelta(seconds=1) for fleet in found]
        for fleet in found:
            fleet.make(disable, "every second 0")
        wait(20)
        came = [fleet.now() for fleet in found]
        for proxy in proxies:
            proxy.up()
        for fleet, down, up in zip(found, went, came, strict=True):
            eventually(lambda: fleet.count("state = 'sent' AND task_name LIKE 'once%'") == TASKS, LIMIT, "the one-offs")
            after = len(fleet.sent("every second 1"))
            eventually(lambda: len(fleet.sent("every second 1")) >= after + 3, LIMIT, "regular runs again")
            fleet.make(disable, "every second 1")
            eventually(fleet.finished, LIMIT, f"the end on {fleet.place}")
            fleet.stop()
            assert not fleet.differences(once=once[fleet.place], copies=fleet.place.schedulers)
            kept = [row for row in fleet.ledger() if row.task == "every second 1"]
            assert not unaccounted(kept)
            late = [row for row in kept if row.state == "sent" and down <= row.due_at < up]
            print(f"{fleet.place}: {len(late)} late run(s); skipped", *(f"{r.reason} {r.due_at}" for r in kept if r.reason))
            assert len(late) <= 1
            gone = [row for row in fleet.ledger() if row.task == "every second 0"]
            assert not [row for row in gone if row.state == "sent" and row.due_at >= down]


def test_the_database_away_for_ten_seconds(templates: Templates, spawn: Spawn) -> None:
    """Also the one-offs that were due meanwhile are sent once, and every second of a task is accounted for."""
    with ExitStack() as stack:
        places = Place("postgresql", "redis", 2), Place("mariadb", "rabbitmq", 2)
        found = stack.enter_context(fleets(templates, spawn, *places))
        proxies = [stack.enter_context(Proxy(fleet.database.kind.url)) for fleet in found]
        once = {}
        for fleet, proxy in zip(found, proxies, strict=True):
            entry = {**fleet.database.settings, "HOST": "127.0.0.1", "PORT": proxy.port}
            fleet.env = {"ONEBEAT_TEST_DB": json.dumps(entry)}
            fleet.start_all()
        for fleet in found:
            fleet.wait_able()
            fleet.make(make_every_second, "every second", 1)
            eventually(lambda: len(fleet.sent("every second 0")) >= 3, LIMIT, "a few regular runs")
            once[fleet.place] = fleet.make(make_one_offs, "once", TASKS, 2.0, 15.0)
        for proxy in proxies:
            proxy.down()
        wait(10)
        for proxy in proxies:
            proxy.up()
        for fleet in found:
            eventually(lambda: fleet.count("state = 'sent' AND task_name LIKE 'once%'") == TASKS, LIMIT, "the one-offs")
            after = len(fleet.sent("every second 0"))
            eventually(lambda: len(fleet.sent("every second 0")) >= after + 3, LIMIT, "regular runs again")
            fleet.make(disable, "every second 0")
            eventually(fleet.finished, LIMIT, f"the end on {fleet.place}")
            fleet.stop()
            # What was sent when the database went could not be recorded: a flush of each scheduler at most.
            assert not fleet.differences(once=once[fleet.place], copies=100 * fleet.place.schedulers)
            assert not unaccounted(row for row in fleet.ledger() if row.task == "every second 0")
