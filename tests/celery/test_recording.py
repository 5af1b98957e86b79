"""Real workers of each pool under many short tasks: every run is recorded, once, and no task waits for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.celery.desk import LIMIT, Desk, desk
from tests.processes import eventually
from tests.scratch import Templates

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(200)]


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


@pytest.mark.parametrize("pool", ["solo", "prefork"])
def test_every_run_is_recorded_also_by_a_worker_that_is_stopped(at: Desk, pool: str) -> None:
    """What ran before a warm shutdown is in the ledger when the worker is gone; another does the rest."""
    number = 1_000
    at.many("plain", number, "many")
    with at.worker(pool, "first", "-l", "warning") as first:
        eventually(lambda: at.tally().get("succeeded", 0) > 100, LIMIT, "a part of them")
        first.send_signal(signal.SIGTERM)
        first.wait(LIMIT)
    ran = at.ran("many")
    complete(at, ran)
    assert 100 < ran < number, "it was stopped in the middle"
    with at.worker(pool, "second", "-l", "warning"):
        eventually(lambda: at.tally() == {"succeeded": number}, LIMIT, "all of them")
    complete(at, number)
    assert at.ran("many") == number


def test_a_child_that_ends_after_its_number_of_tasks_writes_first(at: Desk) -> None:
    at.many("plain", 60, "few")
    with at.worker("prefork", "worker", "--max-tasks-per-child", "3", ONEBEAT_TEST_SETTINGS='{"record_seconds": 3600}'):
        eventually(lambda: at.tally().get("succeeded", 0) >= 54, LIMIT, "the children's last words")
    complete(at, at.tally()["succeeded"])
