"""SIGTERM and SIGINT: a scheduler ends with code 0 in about a second and leaves nothing that others must wait for."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import ExitStack
from functools import partial

import pytest
from django.db import OperationalError

from onebeat.engine.stop import Stop
from tests.engine.fleet import LIMIT, Fleet, Place, Spawn, fleets, make_one_offs
from tests.processes import eventually
from tests.proxy import Proxy
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

TASKS = 2000
#: Who gets which signal; a fleet of two is the first two.
WHO = (("beat", signal.SIGTERM), ("run", signal.SIGINT), ("beat", signal.SIGINT), ("run", signal.SIGTERM))
#: Seconds. About one on an idle machine; whoever waits for a broker's answer needs five.
STOPPED = 4.5
#: So long a lease that nothing left claimed under it would be sent in time; and one message after the other, so that
#: a batch takes a while.
SETTINGS = {"lease_seconds": 10 * LIMIT, "plain_below": 10 * TASKS, "batch_size": 200}


def start_each(fleet: Fleet) -> None:
    fleet.settings = SETTINGS
    for kind, _ in WHO[: fleet.place.schedulers]:
        fleet.start(kind)


def stop_each(fleet: Fleet, what: str, within: float = STOPPED) -> None:
    """Send each its signal, all at once."""
    began = time.monotonic()
    for process, (_, number) in zip(fleet.running, WHO, strict=False):
        process.send_signal(number)
    for process, (kind, number) in zip(fleet.running, WHO, strict=False):
        code = process.wait(LIMIT)
        took = time.monotonic() - began
        print(f"{fleet.place} {what}: {kind} {number.name} ended with {code} after {took:.2f} s")
        assert (code, took < within) == (0, True)
    fleet.running.clear()


def carry_on(fleet: Fleet, once: list[str], copies: int = 0) -> None:
    """Another scheduler finds everything that was left, at once."""
    held = [row for row in fleet.ledger() if row.state == "claimed" and (row.lease or 0) > 0]
    assert not held, f"{len(held)} occurrences are still claimed on {fleet.place}"
    assert not fleet.query("SELECT id FROM onebeat_beat WHERE stopped_at IS NULL")
    fleet.start("run")
    eventually(partial(fleet.finished, TASKS), LIMIT, f"all on {fleet.place}")
    fleet.stop()
    assert not fleet.differences(once=once, copies=copies)


def test_a_signal_ends_an_idle_scheduler(templates: Templates, spawn: Spawn) -> None:
    with fleets(templates, spawn, Place("postgresql", "redis", 4)) as (fleet,):
        start_each(fleet)
        fleet.wait_able()
        stop_each(fleet, "idle")


def test_a_signal_ends_a_busy_scheduler(templates: Templates, spawn: Spawn) -> None:
    """In the middle of 2,000 messages, of which none is lost and none is sent twice."""
    places = Place("postgresql", "redis", 4), Place("mariadb", "rabbitmq", 2)
    with fleets(templates, spawn, *places) as found:
        for fleet in found:
            start_each(fleet)
        for fleet in found:
            fleet.wait_able()
            once = fleet.make(make_one_offs, "once", TASKS, 0.0)
            eventually(partial(fleet.count, "state = 'sent'"), LIMIT, "the first batch")
            stop_each(fleet, "busy")
            sent = fleet.count("state = 'sent'")
            print(f"{fleet.place}: {sent} of {TASKS} sent until then")
            assert sent < TASKS, "they were done before the signal came"
            carry_on(fleet, once)


def test_a_signal_while_the_broker_hangs(templates: Templates, spawn: Spawn) -> None:
    """A broker that takes and does not answer cannot hold a scheduler."""
    with ExitStack() as stack:
        places = Place("postgresql", "redis", 2), Place("postgresql", "rabbitmq", 2)
        found = stack.enter_context(fleets(templates, spawn, *places))
        proxies = [stack.enter_context(Proxy(fleet.post.url)) for fleet in found]
        for fleet, proxy in zip(found, proxies, strict=True):
            fleet.env = {"ONEBEAT_TEST_BROKER": proxy.url}
            start_each(fleet)
        for fleet, proxy in zip(found, proxies, strict=True):
            fleet.wait_able()
            proxy.stall()
            once = fleet.make(make_one_offs, "once", TASKS, 0.0)
            eventually(partial(fleet.count, "state = 'claimed'"), LIMIT, "the first claim")
            stop_each(fleet, "hanging")
            proxy.cut()
            proxy.up()
            carry_on(fleet, once, copies=fleet.place.schedulers)


def test_a_signal_is_not_lost_with_a_failed_tick() -> None:
    """Beat's handler ends it by SystemExit, and the tick it interrupts may end in the database's error instead."""
    stop = Stop()

    def leave(*_: object) -> None:
        raise SystemExit(0)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit), stop.shield():
            signal.raise_signal(signal.SIGTERM)
            raise OperationalError("the connection is closed")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stop.requested()


def test_a_signal_while_the_database_hangs(templates: Templates, spawn: Spawn) -> None:
    """Then nothing can be given back: the leases end by themselves, and the scheduler ends now."""
    with fleets(templates, spawn, Place("postgresql", "redis", 2)) as (fleet,), Proxy(fleet.database.kind.url) as proxy:
        behind = {**fleet.database.settings, "HOST": "127.0.0.1", "PORT": proxy.port}
        fleet.env = {"ONEBEAT_TEST_DB": json.dumps(behind)}
        start_each(fleet)
        fleet.wait_able()
        proxy.stall()
        # Only a tick that waits for an answer proves anything, and each begins after a poll at the latest.
        threading.Event().wait(2)
        stop_each(fleet, "database hanging", within=2 * STOPPED)
