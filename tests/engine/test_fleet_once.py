"""Several schedulers, each due time once: two and four of them, of both kinds, on real databases and brokers.

ONEBEAT_TEST_ALL=1 runs every database with every broker and both numbers, 30 s each, one after the other.
"""

from __future__ import annotations

import os
from functools import partial
from itertools import product

import pytest

from tests.engine.fleet import LIMIT, Place, Spawn, disable, fleets, make_every_second, make_one_offs
from tests.processes import eventually
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(280)]


TOGETHER = (
    Place("postgresql", "redis", 2),
    Place("postgresql", "rabbitmq", 4),
    Place("mariadb", "rabbitmq", 2),
    Place("sqlite", "redis", 4),
    Place("postgresql", "redis", 2, use_tz="0"),
)
EACH = [(Place(*each),) for each in product(("postgresql", "mariadb", "sqlite"), ("redis", "rabbitmq"), (2, 4))]
ROUNDS = [*EACH, TOGETHER] if os.environ.get("ONEBEAT_TEST_ALL") == "1" else [TOGETHER]
SECONDS = 30
ONE_OFFS = 2000


@pytest.mark.parametrize("places", ROUNDS, ids=lambda places: str(places[0]) if len(places) == 1 else "together")
def test_each_due_time_once(templates: Templates, spawn: Spawn, places: tuple[Place, ...]) -> None:
    """Each one-off is sent once, each second of an every-second task too, and the broker agrees with the ledger."""
    with fleets(templates, spawn, *places) as found:
        for fleet in found:
            fleet.start_all()
        work = []
        for fleet in found:
            fleet.wait_able()
            once = fleet.make(make_one_offs, "at once", ONE_OFFS // 2, 3.0)
            once += fleet.make(make_one_offs, "over time", ONE_OFFS // 2, 3.0, SECONDS - 8.0)
            work.append((fleet, once, fleet.make(make_every_second, "every second", 20)))
        different = {}
        for fleet, once, every in work:
            eventually(partial(fleet.has_sent, every[0], SECONDS), SECONDS + LIMIT, f"{SECONDS} s on {fleet.place}")
            fleet.make(disable, *every)
            eventually(partial(fleet.finished, ONE_OFFS), LIMIT, f"the end of all tasks on {fleet.place}")
            took = fleet.stop()
            print(f"{fleet.place}: {len(fleet.collect())} messages; stopped in {took:.2f} s")
            different[str(fleet.place)] = fleet.differences(once=once, every=every)
            assert min(len(fleet.sent(name)) for name in every) >= SECONDS - 1
        assert not any(different.values()), different
