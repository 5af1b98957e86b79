"""Through PgBouncer in transaction mode, with fewer connections to the server than there are clients: no statement may
count on what an earlier one left in the session.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from tests import servers, services
from tests.engine.fleet import LIMIT, Fleet, Place, Spawn, disable, fleets, make_every_second, make_one_offs
from tests.models import test_unique_rows_race as unique
from tests.processes import eventually, manage, processes, run_python
from tests.scratch import Scratch, Templates
from tests.verbs import test_once_race as once

pytestmark = [pytest.mark.concurrency, pytest.mark.slow, pytest.mark.long]

CLIENTS, SERVER_CONNECTIONS = 12, 2
#: As many as it takes for each way to be taken inside of a transaction too.
ROUNDS = 4
PLACE = Place("postgresql", "redis", 3)
ONE_OFFS, SECONDS = 200, 4


@pytest.fixture(scope="module")
def pool() -> Iterator[servers.Server]:
    try:
        server = servers.pgbouncer(services.url_of("postgresql"), SERVER_CONNECTIONS)
        server.start(services.probe)
    except (services.Missing, servers.CannotStart) as error:
        assert not os.environ.get("CI"), error
        pytest.skip(f"PgBouncer is NOT RUN: {error}")
    yield server
    server.close()


def through(pool: servers.Server, scratch: Scratch) -> dict[str, str]:
    """The environment of a process that comes to the database by the pool."""
    kind = replace(scratch.kind, url=pool.url)
    return {"ONEBEAT_TEST_DB": json.dumps(kind.settings_dict(scratch.name))}


def test_one_row_for_each_value_through_the_pool(templates: Templates, pool: servers.Server) -> None:
    """The tables are made through it too."""
    kind = services.database("postgresql")
    with Scratch.open(kind) as scratch:
        env = through(pool, scratch)
        manage(env, "migrate", "--verbosity=0")
        outcomes = processes(CLIENTS, env, unique.race, ROUNDS)
        unique.check(outcomes, run_python(env, unique.rows_of_every_kind), ROUNDS)
    with Scratch.open(kind, templates.of(kind)) as scratch:
        env = through(pool, scratch)
        once.check(processes(CLIENTS, env, once.race), run_python(env, once.left))


@pytest.mark.broker
def test_schedulers_that_share_its_connections(templates: Templates, spawn: Spawn, pool: servers.Server) -> None:
    """More schedulers than connections: each due time once, and the broker agrees with the ledger."""
    with fleets(templates, spawn, PLACE) as (fleet,):
        fleet.env = through(pool, fleet.database)
        fleet.start_all()
        fleet.wait_able()
        names = fleet.make(make_one_offs, "over time", ONE_OFFS, 1.0, 3.0)
        every = fleet.make(make_every_second, "every second", 5)
        eventually(partial(fleet.has_sent, every[0], SECONDS), LIMIT, f"{SECONDS} runs of a task")
        fleet.make(disable, *every)
        eventually(partial(fleet.finished, ONE_OFFS), LIMIT, "the end of all tasks")
        assert behind(fleet) <= SERVER_CONNECTIONS < len(fleet.running)
        fleet.stop()
        assert not fleet.differences(once=names, every=every)


def behind(fleet: Fleet) -> int:
    """How many connections the server has to the database, besides the one that asks."""
    ((count,),) = fleet.query(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    return int(count)
