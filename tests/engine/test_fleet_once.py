"""Several schedulers, each due time once: two and four of them, of both kinds, on real databases and brokers.

ONEBEAT_TEST_ALL=1 runs every database with every broker and both numbers, 30 s each.
"""

from __future__ import annotations

import os

import pytest

from tests.engine.fleet import LIMIT, Fleet, Spawn, disable, make_every_second, make_one_offs
from tests.processes import eventually
from tests.scratch import Post, Scratch

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

#: (database, broker, schedulers): seconds. What is not here runs with ONEBEAT_TEST_ALL only.
RUNS = {
    ("postgresql", "redis", 2): 15,
    ("postgresql", "rabbitmq", 4): 30,
    ("mariadb", "rabbitmq", 2): 30,
    ("sqlite", "redis", 4): 30,
}
EVERYTHING = os.environ.get("ONEBEAT_TEST_ALL") == "1"


def run(fleet: Fleet, schedulers: int, seconds: float, one_offs: int = 2000) -> None:
    fleet.start_mixed(schedulers)
    once = fleet.make(make_one_offs, "at once", one_offs // 2, 3.0)
    once += fleet.make(make_one_offs, "over time", one_offs // 2, 3.0, seconds - 8)
    every = fleet.make(make_every_second, "every second", 20)
    eventually(lambda: len(fleet.sent(every[0])) >= seconds, seconds + LIMIT, f"{seconds:g} s of work")
    fleet.make(disable, *every)
    eventually(fleet.finished, LIMIT, "the end of all tasks")
    took = fleet.stop()
    print(f"{len(fleet.collect())} messages; stopped in {took:.2f} s")
    assert not fleet.differences(once=once, every=every)
    assert min(len(fleet.sent(name)) for name in every) >= seconds - 1


@pytest.mark.parametrize("schedulers", [2, 4])
def test_each_due_time_once(database: Scratch, broker: Post, spawn: Spawn, schedulers: int) -> None:
    seconds = RUNS.get((database.kind.name, broker.name, schedulers))
    if seconds is None and not EVERYTHING:
        pytest.skip("runs with ONEBEAT_TEST_ALL=1")
    run(Fleet(database, broker, spawn), schedulers, 30 if EVERYTHING or seconds is None else seconds)
