"""What a tick asks of the database: counted, never timed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from onebeat.core import clock
from onebeat.db import reads
from onebeat.models import PeriodicTask, TaskState
from onebeat.store import task_states
from onebeat.store.poll import snapshot
from tests.engine.kit import Bench, at, clocked, every, task

ROUNDS, TASKS = 30, 300


def test_a_tick_with_nothing_to_do_asks_one_question(bench: Bench) -> None:
    task(interval=every(3600))
    bench.tick()
    counted = []
    for _ in range(6):  # now and then it also says that it is there, and asks for the housekeeping
        with CaptureQueriesContext(
            connection,
        ) as asked:
            bench.tick()
        counted.append(len(asked))
    assert min(counted) == 1


@pytest.mark.parametrize("tasks", [1, 200])
def test_a_claim_has_as_many_statements_for_many_as_for_one(bench: Bench, tasks: int) -> None:
    made = [PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(tasks)]
    PeriodicTask.objects.bulk_create(made)
    bench.tick()
    clock.move(at(10))
    with CaptureQueriesContext(connection) as asked:
        bench.tick()
    assert len(bench.sent) == tasks
    written = [one["sql"] for one in asked if one["sql"].startswith(("INSERT", "UPDATE", "WITH"))]
    own = [sql for sql in written if "onebeat_occurrence" in sql or "onebeat_taskstate" in sql]
    if connection.vendor == "postgresql":
        assert len(own) == 3  # recorded, moved on, sent


def _pages(sql: str) -> int:
    """How many pages a statement touches."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        found: Any = cursor.fetchone()[0]
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _asked(ask: Callable[[], object]) -> str:
    with CaptureQueriesContext(connection) as asked:
        ask()
    return str(next(one["sql"] for one in asked if "onebeat_taskstate" in one["sql"]))


def test_moves_under_a_long_transaction_do_not_make_the_claim_dearer(bench: Bench) -> None:
    """While any transaction is open, each move of a wake time leaves an index entry behind. This test's own transaction
    is such a one."""
    if connection.vendor != "postgresql":
        pytest.skip("about PostgreSQL's index entries")
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(3600)) for n in range(TASKS)])
    bench.tick()
    with transaction.atomic():
        with connection.cursor() as cursor:
            for number in range(ROUNDS):
                cursor.execute("UPDATE onebeat_taskstate SET wake_at = %s", [at(number).replace(tzinfo=None)])
            # As with a million rows: along the index.
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
            cursor.execute("SET LOCAL enable_sort = off")
        TaskState.objects.update(wake_at=at(ROUNDS + 100))
        now, floor = at(ROUNDS + 50), at(ROUNDS + 40)
        left_behind = _pages(_asked(lambda: task_states.lock_due("default", at(0) - timedelta(days=1), now, 500)))
        claim = _pages(_asked(lambda: task_states.lock_due("default", floor, now, 500)))
        look = _pages(_asked(lambda: snapshot("default", floor)))
    assert left_behind > 100  # what it would cost without the lower bound
    assert claim < 10
    assert look < 20


def test_the_statements_of_a_claim_are_made_once(bench: Bench) -> None:
    """Whatever Django writes, each must have taken its values: one that has not is made again every time."""
    if connection.vendor != "postgresql":
        pytest.skip("elsewhere the number of parameters differs with the number of rows")
    task(clocked=clocked(at(5)))
    bench.work(5)
    bench.engine.run_counts.write()
    names = reads.made(connections["default"])
    assert {"namespace", "pause", "definitions", "run state", "finished"} <= names.keys()
    assert any(name.startswith("due ") for name in names)


def test_what_comes_due_during_a_tick_is_taken_up_at_once(bench: Bench) -> None:
    task("a", clocked=clocked(at(1)))
    task("b", clocked=clocked(at(2)))
    bench.tick()
    bench.engine.parts.at = lambda point: clock.move(at(3)) if point == "settled" else None
    clock.move(at(1))
    assert bench.tick() == 0
    assert bench.sent == [("a", 1)]
    bench.tick()
    assert bench.sent == [("a", 1), ("b", 2)]


def test_while_there_is_something_to_send_run_counts_are_written_in_small_portions(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(120)])
    bench.work(10)
    owed = bench.engine.run_counts
    with clock.using(clock.Source(monotonic=lambda: 1.01 * bench.engine.parts.settings.run_state_seconds)):
        for left in 70, 20, 0:
            owed.step(0.0)
            assert len(owed) == left
    assert PeriodicTask.objects.filter(total_run_count=1).count() == 120
