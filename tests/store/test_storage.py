"""What the ledger costs PostgreSQL over time: rows that are settled, started and ended in their place."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from django.db import connection

from onebeat.core import clock
from onebeat.core.attempts import Attempt, Outcome
from onebeat.models import Occurrence, PeriodicTask
from onebeat.store import attempts
from tests.engine.kit import Bench, another_session, at, every, sql

_TASKS, _ROUNDS = 100, 4
_WORKER = "celery@worker-7f9c4d-x2x9z"


def _updates() -> tuple[int, int]:
    """How many updates the ledger has seen, and how many of them no index has learned of."""
    sql("SELECT pg_stat_force_next_flush()")
    sql("SELECT pg_stat_clear_snapshot()")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = %s", ["onebeat_occurrence"]
        )
        updated, hot = cursor.fetchone()
        return updated, hot


@pytest.mark.parametrize("held_back", [False, True], ids=["vacuum can work", "a transaction holds vacuum back"])
def test_nearly_all_updates_of_the_ledger_touch_no_index(bench: Bench, held_back: bool) -> None:
    """One run in ten fails, and its error is listed by an index."""
    if connection.vendor != "postgresql":
        pytest.skip("PostgreSQL's way to keep versions of a row")
    interval = every(10)
    names = [f"shop.orders.tasks.send reminders {number}" for number in range(_TASKS)]
    PeriodicTask.objects.bulk_create([PeriodicTask(name=name, task="t", interval=interval) for name in names])
    bench.tick()
    updated, hot = _updates()
    with ExitStack() as stack:
        if held_back:
            cursor = stack.enter_context(another_session())
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT COUNT(*) FROM onebeat_occurrence")
        for _ in range(_ROUNDS):
            bench.advance(10)
            runs = []
            for number, row in enumerate(Occurrence.objects.filter(state="sent")):
                one = Attempt(row.task_uid, row.due_at, row.run, 0)
                attempts.begin("default", one, number + 1, _WORKER)
                failed = number % 10 == 0
                outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
                ending = clock.monotonic(), outcome, "ValueError('no such order')" if failed else ""
                runs.append(attempts.Run(one, _WORKER, number + 1, 0.0, ending, start_is_known=True))
            assert attempts.write("default", runs) == []
    assert Occurrence.objects.filter(due_at__gt=at(0), finished_at__isnull=False).count() == _TASKS * _ROUNDS
    now_updated, now_hot = _updates()
    share = (now_hot - hot) / (now_updated - updated)
    assert now_updated - updated == 3 * _TASKS * _ROUNDS
    assert share >= 0.95, f"{share:.1%} of {now_updated - updated}"
