"""Nobody's open transaction stops a scheduler, and schedulers do not wait for each other.

SQLite has one writer at a time and so nothing to test here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections

from onebeat.core import clock
from onebeat.db import transactions
from onebeat.models import PeriodicTask, PeriodicTasks, TaskState
from onebeat.models.instants import from_utc
from onebeat.store import claims, plans
from onebeat.store import occurrences as rows
from onebeat.store.claims import Terms
from tests.engine.kit import Bench, Died, another_session, at, clocked, due, every, ledger, sql, task

P = "django_celery_beat_"


@pytest.fixture(autouse=True)
def impatient(bench: Bench) -> Iterator[None]:
    """Whoever waits for a lock gets an error after two seconds, not a hang."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    wait, back = {
        "postgresql": ("SET lock_timeout = '2s'", "SET lock_timeout = 0"),
        "mysql": ("SET innodb_lock_wait_timeout = 2", "SET innodb_lock_wait_timeout = 50"),
    }[connection.vendor]
    sql(wait)
    yield
    sql(back)


@contextmanager
def held(statement: str, *params: Any) -> Iterator[Any]:
    """Another session holds what `statement` locks."""
    with another_session() as cursor:
        cursor.execute(statement, params)
        yield cursor


def test_a_locked_task_is_claimed_all_the_same(bench: Bench) -> None:
    one, two = task("one", interval=every(10)), task("two", interval=every(10))
    bench.tick()
    with held(f"SELECT id FROM {P}periodictask WHERE id = %s FOR UPDATE", one.pk):
        bench.work(10)
        assert sorted(bench.sent) == [("one", 10), ("two", 10)]
        bench.engine.run_counts.write()
        two.refresh_from_db()
        assert two.total_run_count == 1
    bench.work(10)
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert (one.total_run_count, one.last_run_at) == (2, from_utc(at(20)))


def test_an_uncommitted_edit_of_every_task_and_schedule_stops_nothing(bench: Bench) -> None:
    for name in "abc":
        task(name, interval=every(10))
    bench.tick()
    with held(f"UPDATE {P}periodictask SET enabled = {'false' if connection.vendor == 'postgresql' else 0}") as cursor:
        cursor.execute(f"UPDATE {P}intervalschedule SET every = 3")
        cursor.execute(
            "INSERT INTO onebeat_change (kind, ref, at) SELECT 'task', id, '2026-03-10 10:00:00' FROM "
            + P
            + "periodictask"
        )
        bench.work(12)
        assert sorted(bench.sent) == [("a", 10), ("b", 10), ("c", 10)]


def test_a_finished_one_off_that_somebody_holds_is_disabled_later(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.work(4)
    with held(f"SELECT id FROM {P}periodictask WHERE id = %s FOR UPDATE", one.pk):
        bench.work(2)
        bench.engine.run_counts.write()
        one.refresh_from_db()
        assert one.enabled
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert not one.enabled


def test_the_row_that_tells_of_changes_may_be_held(bench: Bench) -> None:
    PeriodicTasks.objects.update_or_create(ident=1, defaults={"last_update": from_utc(at(0))})
    with held(f"UPDATE {P}periodictasks SET last_update = last_update"):
        one = task(interval=every(10))
        bench.work(10)
        assert bench.sent == [("t", 10)]
    one.delete()


def test_two_people_who_create_tasks_do_not_wait_for_each_other(bench: Bench) -> None:
    with another_session() as cursor:
        cursor.execute(f"SELECT {P}intervalschedule.id FROM {P}intervalschedule")
        cursor.execute(
            f"INSERT INTO {P}periodictask (name, task, args, kwargs, headers, one_off, enabled, total_run_count,"
            " date_changed, description) SELECT 'theirs', 't', '[]', '{}', '{}', enabled, enabled, 0,"
            f" '2026-03-10 10:00:00', '' FROM {P}periodictask WHERE 1 = 0"
        )
        cursor.execute("INSERT INTO onebeat_change (kind, ref, at) VALUES ('task', 99, '2026-03-10 10:00:00')")
        task("ours", interval=every(10))
        bench.work(10)
    assert bench.sent == [("ours", 10)]


@pytest.fixture
def second_alias() -> Iterator[str]:
    """The same database once more, with a connection of its own."""
    connections["second"] = connections.create_connection("default")
    yield "second"
    connections["second"].close()
    del connections["second"]


def test_schedulers_claim_disjoint_tasks_while_one_is_in_the_middle_of_its_claim(
    bench: Bench, second_alias: str
) -> None:
    for number in range(6):
        task(f"t{number}", interval=every(10), start_time=from_utc(at(10 + number / 10)))
    bench.tick()
    rows.namespace("default")  # the very first claim of a database makes it
    clock.move(at(11))
    terms = Terms(beat=1, lease=timedelta(seconds=30), limit=3, missed_before=lambda now: at(0))
    with transactions.short_transaction(second_alias):
        theirs = claims.due(second_alias, terms, None).occurrences
        assert [one.task.name for one in theirs] == ["t0", "t1", "t2"]
        bench.tick()
        assert bench.sent == [("t3", 10.3), ("t4", 10.4), ("t5", 10.5)]
        bench.work(2)
        assert len(bench.sent) == 3
    bench.work(2)
    assert len(bench.sent) == 3


def test_what_a_scheduler_was_claiming_when_it_was_lost_is_claimed_by_another(bench: Bench, second_alias: str) -> None:
    task(interval=every(10))
    bench.tick()
    rows.namespace("default")
    clock.move(at(10))
    terms = Terms(beat=1, lease=timedelta(seconds=30), limit=3, missed_before=lambda now: at(0))
    with pytest.raises(Died), transactions.short_transaction(second_alias):
        assert len(claims.due(second_alias, terms, None).occurrences) == 1
        bench.work(2)
        assert bench.sent == []
        raise Died
    bench.work(1)
    assert bench.sent == [("t", 10)]


def test_the_first_claims_of_two_schedulers_do_not_meet_on_the_namespace(bench: Bench) -> None:
    task("first", interval=every(5))
    bench.work(5)
    with held("SELECT value FROM onebeat_fact WHERE name = 'namespace' FOR UPDATE"):
        bench.work(5)
    assert bench.sent == [("first", 5), ("first", 10)]


def test_a_task_whose_state_is_held_is_planned_at_the_next_turn(bench: Bench) -> None:
    one = task(interval=every(100))
    bench.tick()
    with held("SELECT task_id FROM onebeat_taskstate WHERE task_id = %s FOR UPDATE", one.pk):
        one.interval = every(50)
        one.save()
        task("other", interval=every(3))
        bench.work(3)
        assert bench.sent == [("other", 3)]
        assert due(one) == 100
    bench.tick()
    assert due(one) == 50


def test_a_lost_occurrence_that_another_is_taking_over_is_left_to_it(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.tick()
    clock.move(at(5))
    bench.die_at("claimed")
    second = Bench()
    with held("SELECT id FROM onebeat_occurrence WHERE task_id = %s FOR UPDATE", one.pk):
        second.tick()
        second.work(40)
        assert second.sent == []
    second.work(7)
    assert second.sent == [("t", 5)]
    assert ledger(one) == [(5, "sent", "")]
    second.engine.close()


def test_the_engine_holds_no_lock_while_it_publishes(bench: Bench) -> None:
    """In the middle of a publish anybody can change any row."""
    one = task(interval=every(10))
    bench.tick()
    answer = bench.outbox.answer
    seen = []

    def publish(message: Any) -> Any:
        with another_session() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'" if connection.vendor == "postgresql" else "SELECT 1")
            cursor.execute(f"UPDATE {P}periodictask SET description = 'x' WHERE id = %s", [one.pk])
            cursor.execute("UPDATE onebeat_taskstate SET version = version WHERE task_id = %s", [one.pk])
            cursor.execute("UPDATE onebeat_occurrence SET claims = claims")
            seen.append(cursor.rowcount)
        assert not connection.in_atomic_block
        return answer(message)

    bench.outbox.answer = publish
    bench.work(10)
    assert bench.sent == [("t", 10)]
    assert len(seen) == 1
    assert TaskState.objects.count() == PeriodicTask.objects.count() == 1


def test_hints_of_tasks_that_somebody_holds_keep_no_other_hint_from_being_read(bench: Bench) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    held = [task(f"held {number}") for number in range(3)]
    bench.tick()
    for one in held:
        PeriodicTask.objects.filter(pk=one.pk).update(interval=every(30))
    other = task("other")
    with another_session() as cursor:
        cursor.execute("SELECT task_id FROM onebeat_taskstate FOR UPDATE")
        assert plans.consume("default", 2) == 1, "the hint behind those that are held"
    assert TaskState.objects.filter(pk=other.pk).exists()
    assert plans.consume("default", 10) == 3
