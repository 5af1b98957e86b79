"""Real workers of each pool under many short tasks: every run is recorded, once, and no task waits for it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.celery.desk import LIMIT, Desk, desk, kill
from tests.processes import eventually
from tests.proxy import Proxy
from tests.scratch import Templates

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(200)]

#: Nothing is written but for another reason than that time has passed.
_NEVER = {"ONEBEAT_TEST_SETTINGS": '{"record_seconds": 3600}'}


@pytest.fixture
def at(templates: Templates, tmp_path: Path) -> Iterator[Desk]:
    with desk(templates, tmp_path, "redis", "postgresql", modules=["tests.celery.tasks"]) as made:
        made.settings["CELERY_WORKER_PREFETCH_MULTIPLIER"] = 20
        yield made


def complete(at: Desk, number: int) -> None:
    """So many rows are there, each whole, and no attempt was counted twice."""
    with at.link.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM onebeat_occurrence WHERE state = 'succeeded' AND attempt = 0 AND outcome = 'success'"
            " AND duplicate_deliveries = 0 AND started_at <= finished_at AND sent_at <= started_at AND worker <> ''"
        )
        assert cursor.fetchone()[0] == number, at.tally()


@pytest.mark.parametrize("pool", ["solo", "prefork", "threads", "gevent"])
def test_every_run_is_recorded_also_by_a_worker_that_is_stopped(at: Desk, pool: str) -> None:
    """What ran before a warm shutdown is in the ledger when the worker is gone, once and whole."""
    number = 5_000 if os.environ.get("ONEBEAT_TEST_ALL") == "1" else 1_000
    at.many("plain", number, "many")
    with at.worker(pool, options=("-l", "warning")) as worker:
        eventually(lambda: at.tally().get("succeeded", 0) > number // 3, LIMIT, "a part of them")
        worker.send_signal(signal.SIGTERM)
        worker.wait(LIMIT)
    ran = at.ran("many")
    complete(at, ran)
    assert at.tally() == {"succeeded": ran, **({"sent": number - ran} if ran < number else {})}


def test_a_child_that_ends_after_its_number_of_tasks_writes_first(at: Desk) -> None:
    at.many("plain", 60, "few")
    with at.worker("prefork", more=_NEVER, options=("--max-tasks-per-child", "3")):
        eventually(lambda: at.tally().get("succeeded", 0) >= 54, LIMIT, "the children's last words")
    complete(at, at.tally()["succeeded"])


def test_no_task_waits_for_a_database_that_is_away(at: Desk) -> None:
    """All of them run meanwhile; nothing is dropped, and every row is complete afterwards."""
    number = 400
    at.many("plain", number, "many")
    proxy = Proxy(at.database.kind.url)
    away = {**at.database.settings, "PORT": proxy.port}
    try:
        with at.worker("prefork", more={"ONEBEAT_TEST_DB": json.dumps(away)}):
            eventually(lambda: at.tally().get("succeeded", 0) > 10, LIMIT, "the first ones")
            proxy.down()
            eventually(lambda: at.ran("many") == number, LIMIT, "all bodies, without a database")
            eventually(lambda: "cannot be recorded for now" in at.log(), LIMIT, "the warning")
            proxy.up()
            eventually(lambda: at.tally() == {"succeeded": number}, LIMIT, "the record of all")
            eventually(lambda: "recorded again; 0 were dropped" in at.log(), LIMIT, "the good news")
    finally:
        proxy.close()
    complete(at, number)
    assert at.ran("many") == number


def test_what_is_killed_leaves_no_wrong_word(at: Desk) -> None:
    """A child, and then the worker with all it has: the last records may be missing, and no run is."""
    number = 60
    at.many("plain", number, "many")
    dead = at.send("dies", at.occurrence(), "dead")
    with at.worker("prefork", "worker") as worker:
        at.becomes(dead, state="failed", outcome="lost")
        eventually(lambda: at.ran("many") == number, LIMIT, "the others")
        kill(worker)
    tally = at.tally()
    assert tally.pop("failed") == 1
    assert sum(tally.values()) == number and set(tally) <= {"sent", "started", "succeeded"}, tally


def test_an_end_that_the_next_run_waits_for_is_written_at_once(at: Desk) -> None:
    """Under `overlap = skip` a run of a moment must not stand in the way of the next."""
    one = at.occurrence()
    one.headers["onebeat_awaited"] = True
    other = at.occurrence()
    with at.worker("solo", more=_NEVER) as worker:
        at.send("plain", other, "other")
        at.wait_ran("other")
        assert at.row(other)["state"] == "sent"
        at.becomes(at.send("plain", one, "awaited"), state="succeeded")
        worker.send_signal(signal.SIGTERM)
        worker.wait(LIMIT)
    complete(at, 2)
