"""A scheduler killed at a stop point, and a broker connection cut in the middle of a batch: nothing is lost."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from functools import partial

import pytest

from tests.engine.fleet import LIMIT, Place, Spawn, extra_copies, fleets, make_one_offs
from tests.processes import eventually
from tests.proof.fleets import judged
from tests.proxy import Proxy
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

TASKS, BATCH, FLUSH = 400, 100, 50
#: What was lost goes out in a dozen small parts, and all of them within one lease: also on a slow machine.
SETTINGS = {"lease_seconds": 8, "batch_size": BATCH, "flush_size": FLUSH, "plain_below": 10}


def test_a_killed_scheduler_loses_nothing(templates: Templates, spawn: Spawn) -> None:
    """One killed between claim and publish, another between publish and settle: copies only of what that one sent."""
    places = Place("postgresql", "redis"), Place("mariadb", "rabbitmq"), Place("sqlite", "redis")
    with fleets(templates, spawn, *places) as found:
        names, began = [], [fleet.now() for fleet in found]
        for fleet in found:
            fleet.settings = SETTINGS
            names.append(fleet.make(make_one_offs, "once", TASKS, 0.0))
        for point, sent in (("claimed", BATCH), ("published", 3 * BATCH)):
            dying = [fleet.spawn(fleet.environment(), "-m", "tests.engine.fleet", point, "2") for fleet in found]
            for fleet, process in zip(found, dying, strict=True):
                assert process.wait(LIMIT) == -signal.SIGKILL
                assert len(fleet.collect()) == sent, f"{fleet.place}, killed at {point!r}"
                assert not extra_copies(fleet.messages)
        for fleet in found:
            assert fleet.count("state = 'sent'") == 2 * BATCH  # the third batch is with the broker, and nobody knows
            fleet.start("run")
        for fleet, once, start in zip(found, names, began, strict=True):
            eventually(partial(fleet.finished, TASKS), LIMIT, f"recovery on {fleet.place}")
            fleet.stop()
            assert not fleet.differences(once=once, copies=BATCH)
            assert not judged(fleet, start, [("crash", start, fleet.now())], once=once), fleet.place
            # The whole batch, since nothing tells which of it arrived, and nothing else.
            assert sum(extra_copies(fleet.messages).values()) == BATCH, fleet.place
            # The second victim may have held what the first had lost: then that was claimed a third time.
            assert {1, 2} <= {row.claims for row in fleet.ledger()} <= {1, 2, 3}, fleet.place


def test_a_connection_cut_in_the_middle_of_a_batch(templates: Templates, spawn: Spawn) -> None:
    """Copies are at most what was in flight, and carry the same id."""
    with ExitStack() as stack:
        places = Place("postgresql", "redis"), Place("postgresql", "rabbitmq"), Place("sqlite", "redis")
        work = []
        for fleet in stack.enter_context(fleets(templates, spawn, *places)):
            proxy = stack.enter_context(Proxy(fleet.post.url))
            # So long a lease that only a scheduler that gives back what it could not send is done in time.
            fleet.settings = {**SETTINGS, "batch_size": TASKS, "lease_seconds": 10 * LIMIT}
            start = fleet.now()
            fleet.env = {"ONEBEAT_TEST_BROKER": proxy.url}
            fleet.start("run")
            fleet.wait_able()
            work.append((fleet, proxy, start, fleet.make(make_one_offs, "once", TASKS, 3.0)))
            # A message is about one kilobyte: in the third or fourth flush of eight.
            proxy.cut_after(170_000)
        for fleet, proxy, start, once in work:
            eventually(partial(fleet.finished, TASKS), LIMIT, f"all on {fleet.place}")
            fleet.stop()
            assert proxy._left is None, "it was never cut"
            assert not fleet.differences(once=once, copies=FLUSH)
            assert not judged(fleet, start, [("broker", start, fleet.now())], once=once), fleet.place
            copies = sum(extra_copies(fleet.messages).values())
            print(f"{fleet.place}: {copies} copies")
            # Part of a flush to Redis had arrived; RabbitMQ confirms message by message.
            assert copies > 0 or fleet.post.name != "redis"
