"""Loops of one's own around or in place of ours, and what classic mode does with run state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import beat
from django.db import connection, transaction

from onebeat.compat.schedulers import DatabaseScheduler, ModelEntry
from onebeat.core import clock
from onebeat.models import Beat, Change, Occurrence, PeriodicTask, PeriodicTasks
from onebeat.models.instants import to_utc
from tests import services
from tests.compat.beating import drive, run, task
from tests.engine.kit import START, clocked, every
from tests.processes import run_python
from tests.project.celery import app
from tests.scratch import Scratch, Templates

Make = Callable[..., Any]
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NO_RECORDS = """
CREATE TRIGGER no_records BEFORE UPDATE OF total_run_count ON django_celery_beat_periodictask
BEGIN SELECT RAISE(FAIL, 'nothing is recorded'); END
"""


class CelerysTick(DatabaseScheduler):
    """Calls Celery's loop by its name, as Nautobot does."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        return beat.Scheduler.tick(self, *args, **kwargs)


def test_celery_s_tick_called_by_its_name_sees_each_change(make_now: Make) -> None:
    scheduler = make_now(CelerysTick)
    assert scheduler.classic == ["tick"]
    assert drive(scheduler) == []
    one = task("one", last_run_at=LONG_AGO)
    assert drive(scheduler) == ["one"]
    task("two", last_run_at=LONG_AGO)
    one.delete()
    assert drive(scheduler) == ["two"] and "one" not in scheduler.schedule
    assert not Change.objects.exists() and Beat.objects.get().unable_reason == Beat.Unable.CLASSIC


class Loop(beat.Scheduler):
    """A loop that is mixed in, as in Saleor."""

    rounds = 0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        self.rounds += 1
        return super().tick(*args, **kwargs)


class MixedIn(DatabaseScheduler, Loop):  # type: ignore[misc]
    pass


def test_a_loop_that_is_mixed_in_runs(make_now: Make) -> None:
    task("one", last_run_at=LONG_AGO)
    scheduler = make_now(MixedIn)
    assert scheduler.classic == ["tick"]
    assert drive(scheduler) == ["one"] and scheduler.rounds > 0


class Touching(DatabaseScheduler):
    """The commonest subclass of all: it shows that it is alive."""

    file: Path

    def tick(self, *args: Any, **kwargs: Any) -> float:
        self.file.touch()
        return super().tick(*args, **kwargs)


class TouchingToo:
    def tick(self, *args: Any, **kwargs: Any) -> float:
        self.file.touch()  # type: ignore[attr-defined]
        return super().tick(*args, **kwargs)  # type: ignore[misc,no-any-return]


class Before(TouchingToo, DatabaseScheduler):
    file: Path


@pytest.mark.parametrize("kind", [Touching, Before])
def test_a_tick_that_adds_something_and_calls_super_runs_on_the_engine(make: Make, kind: Any, tmp_path: Path) -> None:
    scheduler = make(kind)
    scheduler.file = tmp_path / "alive"
    scheduler.tick()
    task("one", interval=every(2))
    scheduler.tick()
    assert (scheduler.classic, run(scheduler, 2)) == ([], ["one"])
    assert scheduler.file.exists() and Occurrence.objects.get().state == "sent"


def test_each_message_has_celery_s_line_in_the_log(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "celery.beat")
    scheduler = make()
    scheduler.tick()
    task("one", interval=every(2))
    scheduler.tick()
    assert run(scheduler, 2) == ["one"]
    assert [record.getMessage() for record in caplog.records if record.name == "celery.beat"] == [
        "Scheduler: Sending due task one (elsewhere.run)"
    ]


# -- run state in classic mode ----------------------------------------------------------------------------------------


@pytest.fixture
def unwritable(transactional_db: None) -> Iterator[Callable[[], None]]:
    """A database that takes no run state, until this is called."""
    if connection.vendor != "sqlite":
        pytest.skip("made with SQLite's own means")

    def end() -> None:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER IF EXISTS no_records")

    with connection.cursor() as cursor:
        cursor.execute(NO_RECORDS)
    yield end
    end()


def test_a_run_that_cannot_be_recorded_is_not_sent_again(unwritable: Callable[[], None], make_now: Make) -> None:
    task("often", interval=every(3600), last_run_at=LONG_AGO)
    once = task("once", clocked=clocked(LONG_AGO))
    scheduler = make_now(CelerysTick)
    assert sorted(drive(scheduler)) == ["often", "once"]
    task("more", last_run_at=LONG_AGO)  # makes it read everything again
    assert drive(scheduler) == ["more"]
    unwritable()
    scheduler.sync()
    once.refresh_from_db()
    assert (once.enabled, once.total_run_count) == (False, 1)
    assert {row.total_run_count for row in PeriodicTask.objects.exclude(task="celery.backend_cleanup")} == {1}


def test_an_entry_that_disables_its_row_while_it_is_made(transactional_db: None) -> None:
    class Disabling(ModelEntry):
        def __init__(self, model: Any, app: Any = None) -> None:
            self._disable(model)
            super().__init__(model, app=app)

    one = task("one")
    Disabling(one, app=app)
    one.refresh_from_db()
    assert not one.enabled


def test_an_entry_put_into_an_empty_schedule_stays_and_runs(make_now: Make) -> None:
    one = task("one", last_run_at=LONG_AGO, enabled=False)
    PeriodicTask.objects.exclude(pk=one.pk).delete()
    scheduler = make_now(CelerysTick, lazy=True)
    assert drive(scheduler) == [] and scheduler.schedule == {}
    one.enabled = True
    scheduler.schedule["one"] = ModelEntry(one, app=app)
    assert list(scheduler.schedule) == ["one"] and drive(scheduler) == ["one"]


def naive_runs() -> list[Any]:
    now = clock.host_now().replace(tzinfo=None)  # as django-celery-beat writes it: in UTC
    task("ran", interval=every(3600), last_run_at=now - timedelta(minutes=10))
    scheduler = DatabaseScheduler(app=app, lazy=True)
    entry = scheduler.schedule["ran"]
    due, seconds = entry.is_due()
    following = next(entry)
    following.save()
    written = PeriodicTask.objects.get(name="ran").last_run_at
    return [due, seconds, (written - now).total_seconds(), following.is_due()[0]]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_a_naive_last_run_is_utc_as_django_celery_beat_writes_it(templates: Templates, zone: str) -> None:
    kind = next(kind for kind in services.databases() if kind.vendor == "sqlite")
    env = {"ONEBEAT_TEST_USE_TZ": "0", "ONEBEAT_TEST_TZ_AWARE": "0", "ONEBEAT_TEST_TIME_ZONE": zone}
    with Scratch.open(kind, templates.of(kind)) as scratch:
        due, seconds, written, again = run_python({**scratch.env, **env}, naive_runs)
    assert (due, again) == (False, False) and 2900 < seconds <= 3000 and 0 <= written < 60


# -- what other people's schedulers and caches look at ----------------------------------------------------------------


def test_a_host_that_is_behind_does_not_move_last_update_back(db: None) -> None:
    """Watchers look for a later time than the last one that they saw."""
    database, host = START, START - timedelta(minutes=10)
    with clock.using(clock.Source(now=lambda: host, database=lambda: database)):
        PeriodicTasks.update_changed()
    assert to_utc(PeriodicTasks.objects.get().last_update) == START


def test_last_change_moves_with_each_change_without_a_scheduler(transactional_db: None) -> None:
    seen = [PeriodicTasks.last_change()]

    def moved() -> bool:
        seen.append(PeriodicTasks.last_change())
        return seen[-1] is not None and (seen[-2] is None or seen[-1] > seen[-2])

    one = task("one")
    assert moved()
    one.args = "[1]"
    one.save()
    assert moved()
    with transaction.atomic():
        PeriodicTask.objects.filter(pk=one.pk).update(enabled=False)
        transaction.set_rollback(True)
    assert not moved()
    one.delete()
    assert moved()
    with clock.pin(START):
        PeriodicTasks.update_changed()
    assert PeriodicTasks.last_change() is not None


def test_the_engine_moves_last_update_after_a_change_and_after_a_delete(make: Make) -> None:
    scheduler = make()
    one = task("one")
    run(scheduler, 1)
    before = PeriodicTasks.objects.get().last_update
    one.delete()
    run(scheduler, 2)
    assert PeriodicTasks.objects.get().last_update > before
    assert PeriodicTasks.last_change() == PeriodicTasks.objects.get().last_update and not Change.objects.exists()
