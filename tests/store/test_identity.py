"""A task's identity is its uid: keys are given out again after a table was emptied or a database restored."""

from __future__ import annotations

import pytest

from onebeat.core import clock
from onebeat.errors import UnknownTask
from onebeat.models import Occurrence, PeriodicTask, TaskState
from onebeat.verbs.run_now import run_now
from tests.engine.kit import Bench, at, clocked, due, every, set_task, sql, sweep, task

LEASE = 30
TABLE = "django_celery_beat_periodictask"


def replaced(old: PeriodicTask, name: str, seconds: float) -> PeriodicTask:
    """Another task under the key of one that was there, made past the ORM's signals, as a restore does."""
    sql(f"DELETE FROM {TABLE} WHERE id = %s", old.pk)
    new = task("in between", clocked=clocked(at(seconds)))
    sql(f"UPDATE {TABLE} SET id = %s, name = %s WHERE id = %s", old.pk, name, new.pk)
    return PeriodicTask.objects.get(pk=old.pk)


def uid(of: PeriodicTask) -> int:
    return TaskState.objects.get(pk=of.pk).uid


def test_what_was_claimed_for_a_task_is_not_sent_as_the_one_that_has_its_key_now(bench: Bench) -> None:
    one = task(interval=every(5))
    bench.tick()
    clock.move(at(5))
    bench.die_at("claimed")
    two = replaced(one, "two", 100)
    other = Bench()
    other.work(LEASE + 8)
    assert other.sent == []
    row = Occurrence.objects.get(due_at=at(5))
    assert (row.task_name, row.state, row.reason) == ("t", "skipped", "cancelled")
    sweep()
    other.work(100)
    assert other.sent == [("two", 100)]
    assert Occurrence.objects.get(state="sent").task_uid == uid(two) != row.task_uid
    other.engine.close()


def test_two_tasks_that_had_one_key_at_one_due_time_both_run_under_ids_of_their_own(bench: Bench) -> None:
    one = task("one", interval=every(5))
    bench.work(6)
    replaced(one, "two", 5)
    sweep()
    bench.work(3)
    assert bench.sent == [("one", 5), ("two", 5)]
    assert len({message.id for message in bench.outbox.messages}) == 2


def test_a_due_task_is_looked_at_before_it_is_sent_as_another(bench: Bench) -> None:
    one = task(interval=every(5))
    bench.tick()
    before = uid(one)
    replaced(one, "two", 60)
    bench.work(6)  # no sweep: the claim meets the plan of the task that is gone
    assert bench.sent == []
    assert due(one) == 60
    assert uid(one) != before
    gone = Occurrence.objects.get()
    assert (gone.task_uid, gone.task_name, gone.reason) == (before, "t", "cancelled")


def test_a_run_that_was_asked_for_is_not_sent_as_another_task(bench: Bench) -> None:
    one = task(interval=every(3600))
    bench.tick()
    run_now(one)
    replaced(one, "two", 600)
    bench.work(8)
    assert bench.sent == []
    assert Occurrence.objects.get().reason == "cancelled"


def test_a_new_name_alone_and_a_new_schedule_alone_keep_the_identity(bench: Bench) -> None:
    one = task(interval=every(60))
    bench.tick()
    before = uid(one)
    set_task(one, name="renamed")
    sweep()
    set_task(one, interval_id=every(30).pk)
    sweep()
    bench.work(3)
    state = TaskState.objects.get(pk=one.pk)
    assert (state.uid, state.task_name) == (before, "renamed")


def test_a_new_name_and_a_new_schedule_at_once_fire_nothing_for_the_past(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(11)
    bench.take()
    set_task(one, name="other", interval_id=every(4).pk)
    sweep()
    bench.work(3)
    assert bench.take() == []
    bench.work(3)
    assert [name for name, _ in bench.take()] == ["other"]


def test_the_namespace_of_ids_is_there_before_the_first_claim(bench: Bench) -> None:
    from django.db.migrations.loader import MigrationLoader

    steps = MigrationLoader(None).get_migration("django_celery_beat", "1001_onebeat_engine").operations
    assert any(getattr(step, "code", None) and step.code.__name__ == "make_namespace" for step in steps)


def test_a_run_of_a_task_that_is_gone_is_asked_for_by_its_object(bench: Bench) -> None:
    gone = task("gone", interval=every(10))
    PeriodicTask.objects.get(pk=gone.pk).delete()
    with pytest.raises(UnknownTask, match="gone"):
        run_now(gone)
