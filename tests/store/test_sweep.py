"""Changes are seen by themselves: through the ORM at the next tick, past it by the next sweep."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.migrations.state import ProjectState

from onebeat.core import clock
from onebeat.models import Change, IntervalSchedule, PeriodicTask, PeriodicTasks, SolarSchedule, TaskState
from onebeat.models.instants import from_utc
from onebeat.store.sweep import Sweep
from tests.engine.kit import Bench, at, clocked, cron, due, every, options, sql, sweep, task


def historical_task() -> Any:
    """What a data migration works with: the bare model, without onebeat's manager and `save`."""
    return ProjectState.from_apps(apps).apps.get_model("django_celery_beat", "PeriodicTask")


def test_queryset_update(bench: Bench) -> None:
    for name in "ab":
        task(name, interval=every(10), enabled=False)
    bench.work(5)
    PeriodicTask.objects.filter(name="a").update(enabled=True)
    bench.work(5)
    assert bench.sent == [("a", 10)]


def test_bulk_create(bench: Bench) -> None:
    made = [PeriodicTask(name=name, task="t", interval=every(10)) for name in "ab"]
    made.append(PeriodicTask(name="c", task="t", clocked=clocked(at(3))))
    PeriodicTask.objects.bulk_create(made)
    bench.work(10)
    assert sorted(bench.sent) == [("a", 10), ("b", 10), ("c", 3)]


def test_bulk_update(bench: Bench) -> None:
    made = [task(name, interval=every(10)) for name in "ab"]
    bench.tick()
    for one in made:
        one.interval = every(4)
    PeriodicTask.objects.bulk_update(made, ["interval"])
    bench.work(4)
    assert sorted(bench.sent) == [("a", 4), ("b", 4)]


def test_a_data_migration(bench: Bench) -> None:
    historical = historical_task()
    one = task("enabled", interval=every(10), enabled=False)
    bench.tick()
    historical.objects.filter(pk=one.pk).update(enabled=True)
    historical.objects.create(name="made", task="t", interval_id=every(10).pk)
    bench.work(2)
    sweep()
    assert not Change.objects.exists()
    bench.work(18)
    # Created at 0, seen at 2: the one that is new here has its grid from there.
    assert sorted(bench.sent) == [("enabled", 10), ("enabled", 20), ("made", 12)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE django_celery_beat_intervalschedule SET every = 5",
        "UPDATE django_celery_beat_periodictask SET crontab_id = {cron}, interval_id = NULL",
        "UPDATE django_celery_beat_periodictask SET enabled = {false}",
        "UPDATE django_celery_beat_periodictask SET start_time = '2026-03-10 10:00:15'",
        "UPDATE django_celery_beat_periodictask SET expires = '2026-03-10 10:00:05'",
        "UPDATE django_celery_beat_periodictask SET clocked_id = {clocked}, interval_id = NULL, one_off = {true}",
    ],
)
def test_raw_sql_is_seen_by_the_next_sweep(bench: Bench, change: str) -> None:
    one = task(interval=every(10))
    words = {"cron": cron("1").pk, "clocked": clocked(at(3)).pk}
    words |= {"true": "true", "false": "false"}
    bench.work(1)
    sql(change.format(**words))
    before = due(one)
    sweep()
    assert before == 10
    assert due(one) != 10


def test_a_sweep_of_unchanged_tasks_writes_nothing(bench: Bench) -> None:
    task("interval", interval=every(10))
    task("cron", crontab=cron("5", "2", timezone="Europe/Paris"), expires=from_utc(at(9000)))
    task("clocked", clocked=clocked(at(50)))
    task("off", interval=every(7), enabled=False, start_time=from_utc(at(100.5)))
    if find_spec("ephem"):
        task("sun", solar=SolarSchedule.objects.get_or_create(event="sunset", latitude="-33.9", longitude="18.4")[0])
    bench.tick()
    versions = dict(TaskState.objects.values_list("pk", "version"))
    assert Sweep("default", 1000)._changed(None) == []
    sweep()
    assert dict(TaskState.objects.values_list("pk", "version")) == versions


def test_a_sweep_goes_through_all_tasks_in_slices(bench: Bench) -> None:
    made = [task(f"t{number}", interval=every(10)) for number in range(7)]
    bench.tick()
    gone = made.pop(3)
    sql("DELETE FROM django_celery_beat_periodictask WHERE id = %s", gone.pk)
    sql("UPDATE django_celery_beat_intervalschedule SET every = 5")
    sweeper = Sweep("default", 2)
    assert sweeper._slice()
    while sweeper._slice():
        pass
    assert {due(one) for one in made} == {5}
    assert not TaskState.objects.filter(pk=gone.pk).exists()


def test_a_rolled_back_change_is_none(bench: Bench) -> None:
    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        task("never")
        raise Undone
    kept = task("kept")
    bench.tick()
    with pytest.raises(Undone), transaction.atomic():
        kept.interval = every(5)
        kept.save()
        raise Undone
    bench.advance(60)
    assert bench.sent == [("kept", 60)]


def test_a_host_whose_clock_is_wrong_changes_nothing(bench: Bench) -> None:
    """A change is seen in the data, whatever `date_changed` or `last_update` say."""
    a, b = task("a", interval=every(20)), task("b", interval=every(20))
    bench.tick()
    future = from_utc(at(30))
    PeriodicTasks.objects.update_or_create(ident=1, defaults={"last_update": future})
    a.interval = every(5)
    a.save()
    sql("UPDATE django_celery_beat_periodictask SET date_changed = '2030-01-01 00:00:00' WHERE id = %s", a.pk)
    bench.advance(0.5)
    b.interval = every(6)
    b.save()
    bench.advance(0.5)
    assert (due(a), due(b)) == (5, 6)


def test_last_change_moves_for_those_who_watch_it(bench: Bench) -> None:
    bench.work(3)
    task("a")
    bench.tick()
    assert PeriodicTasks.last_change() == from_utc(at(3))
    bench.work(2)
    assert PeriodicTasks.last_change() == from_utc(at(3))
    PeriodicTask.objects.update(enabled=False)
    bench.tick()
    assert PeriodicTasks.last_change() == from_utc(at(5))


def test_a_shared_schedule_with_very_many_tasks_is_planned_within_one_tick(bench: Bench) -> None:
    shared = every(1000)
    PeriodicTask.objects.bulk_create(
        [PeriodicTask(name=f"t{number}", task="t", interval=shared) for number in range(1200)]
    )
    bench.tick()
    IntervalSchedule.objects.filter(pk=shared.pk).update(every=500)
    bench.tick()
    assert not Change.objects.exists()
    assert set(TaskState.objects.values_list("due_at", flat=True)) == {at(500)}


def test_plans_that_are_late_are_claimed_at_the_next_tick(bench: Bench) -> None:
    """The claim looks no further back than it must; a plan for the past is put where it looks."""
    bench.work(5)
    task(clocked=clocked(at(-100_000)))
    sql("UPDATE onebeat_change SET at = %s", "2026-03-10 08:00:00")
    bench.tick()
    assert bench.take() == [("t", -100_000)]
    late = task("late", interval=every(10))
    sql("UPDATE onebeat_change SET at = %s", "2026-03-10 08:00:03")
    bench.tick()
    assert bench.take() == [("late", -7), ("late", 3)]  # the newest missed one, and one that is only late
    assert due(late) == 13


def test_a_plan_that_was_committed_very_late_is_found_within_a_minute(bench: Bench) -> None:
    one = task(interval=every(100))
    bench.work(30)
    TaskState.objects.filter(pk=one.pk).update(due_at=at(1), wake_at=at(1))
    bench.advance(1)
    for _ in range(6):
        bench.advance(7)
    assert bench.sent == [("t", 1)]


def test_the_delay_is_the_time_to_the_next_wake_or_the_poll_interval(bench: Bench) -> None:
    assert bench.tick() == 1.0
    one = task(interval=every(10))
    assert bench.tick() == 1.0
    bench.advance(9.75)
    assert bench.tick() == 0.25
    options(one, jitter_seconds=0)
    bench.advance(0.25)
    assert bench.sent == [("t", 10)]
    bench.outbox.unavailable = True
    clock.move(at(19.9))
    assert bench.tick() == 1.0


def test_more_than_one_batch_goes_out_in_one_tick(bench: Bench) -> None:
    small = Bench(batch_size=10, flush_size=3)
    small.tick()
    PeriodicTask.objects.bulk_create(
        [PeriodicTask(name=f"t{number:02}", task="t", interval=every(10)) for number in range(35)]
    )
    small.tick()
    clock.move(at(10))
    assert small.tick() == 1.0
    assert len(small.sent) == len(set(small.sent)) == 35
    small.engine.close()


def test_an_idle_tick_asks_little_and_as_much_for_many_tasks_as_for_few(bench: Bench) -> None:
    def queries() -> int:
        clock.move(clock.host_now() + timedelta(seconds=0.01))
        with CountedQueries() as counted:
            bench.tick()
        return counted.number

    task("one", interval=every(1000))
    bench.work(3)
    few = queries()
    PeriodicTask.objects.bulk_create(
        [PeriodicTask(name=f"t{number}", task="t", interval=every(1000)) for number in range(1500)]
    )
    bench.work(3)
    assert queries() == few <= 12


class CountedQueries:
    def __enter__(self) -> CountedQueries:
        self.number = 0
        self._wrapper = connection.execute_wrapper(self._count)
        self._wrapper.__enter__()
        return self

    def _count(self, execute: Any, *args: Any) -> Any:
        self.number += 1
        return execute(*args)

    def __exit__(self, *error: Any) -> None:
        self._wrapper.__exit__(*error)
