"""When a new task runs first, and what follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from onebeat.core import clock
from onebeat.models import SolarSchedule
from onebeat.models.instants import from_utc
from tests.engine.kit import START, Bench, at, clocked, cron, due, every, ledger, set_task, sweep, task


def test_an_interval_runs_first_one_period_after_its_creation_and_never_drifts(bench: Bench) -> None:
    task(interval=every(10))
    bench.tick()
    assert bench.sent == []
    bench.advance(9)
    assert bench.sent == []
    bench.advance(1.4)
    assert bench.take() == [("t", 10)]
    bench.advance(9.5)
    assert bench.take() == []
    bench.advance(0.1)
    assert bench.take() == [("t", 20)]


def test_a_crontab_runs_at_the_first_match_after_its_creation(bench: Bench) -> None:
    task(crontab=cron("0", "15"), start_time=from_utc(at(-120)))
    bench.advance(60)
    assert bench.sent == []
    bench.advance(5 * 3600 - 61)
    assert bench.sent == []
    bench.advance(1)
    assert bench.sent == [("t", 5 * 3600)]


def test_a_crontab_whose_start_lies_ahead_waits_for_its_first_match_from_there_on(bench: Bench) -> None:
    inclusive = task("inclusive", crontab=cron("0"), start_time=from_utc(at(7200)))
    task("a moment too late", crontab=cron("0"), start_time=from_utc(at(7200.5)))
    bench.advance(3600)
    assert bench.sent == []
    bench.advance(3600)
    assert bench.take() == [("inclusive", 7200)]
    bench.advance(3600)
    assert sorted(bench.take()) == [("a moment too late", 10800), ("inclusive", 10800)]
    assert due(inclusive) == 14400


def test_an_interval_with_a_start_has_its_grid_there(bench: Bench) -> None:
    task("ahead", interval=every(1, "hours"), start_time=from_utc(at(1800)))
    task("behind", interval=every(1, "hours"), start_time=from_utc(at(-600)))
    bench.advance(1800)
    assert bench.take() == [("ahead", 1800)]
    bench.advance(1200)
    assert bench.take() == [("behind", 3000)]
    bench.advance(2400)
    assert bench.take() == [("ahead", 5400)]


def test_a_clocked_task_runs_once_and_is_disabled(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.advance(4)
    assert bench.sent == []
    bench.advance(1)
    assert bench.sent == [("t", 5)]
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert (one.enabled, one.total_run_count, one.last_run_at) == (False, 1, from_utc(at(5)))
    bench.work(3)
    sweep()
    bench.work(3)
    assert bench.sent == [("t", 5)]


def test_a_clocked_time_that_has_passed_when_the_task_is_made_runs_at_once(bench: Bench) -> None:
    task(clocked=clocked(at(-90)))
    bench.tick()
    assert bench.sent == [("t", -90)]


def test_two_tasks_at_one_clocked_instant_both_run_once(bench: Bench) -> None:
    task("a", clocked=clocked(at(5)))
    task("b", clocked=clocked(at(5)))
    bench.work(8)
    assert sorted(bench.sent) == [("a", 5), ("b", 5)]


def test_a_one_off_of_any_kind_runs_once(bench: Bench) -> None:
    made = [task("every", one_off=True, interval=every(10)), task("cron", one_off=True, crontab=cron("*"))]
    bench.advance(10)
    assert bench.take() == [("every", 10)]
    bench.advance(50)
    assert bench.take() == [("cron", 60)]
    bench.engine.run_counts.write()
    bench.advance(600)
    assert bench.take() == []
    for one in made:
        one.refresh_from_db()
        assert not one.enabled


def test_nothing_is_due_after_the_end(bench: Bench) -> None:
    one = task(interval=every(10), expires=from_utc(at(20)))
    bench.work(60)
    assert bench.sent == [("t", 10), ("t", 20)]
    assert due(one) is None
    one.refresh_from_db()
    assert one.enabled


def test_an_end_before_the_first_run_means_no_run(bench: Bench) -> None:
    assert bench.engine.parts.settings.sweep_size == 0
    one = task(one_off=True, interval=every(10), expires=from_utc(at(9)))
    bench.work(15)
    sweep()
    assert (bench.sent, due(one)) == ([], None)


def test_a_solar_task_runs_at_its_event(bench: Bench) -> None:
    pytest.importorskip("ephem")
    tromso, _ = SolarSchedule.objects.get_or_create(event="sunrise", latitude="69.6492", longitude="18.9553")
    with clock.pin(datetime(2026, 6, 1, tzinfo=UTC)):
        one = task(solar=tromso)
        bench.tick()
        assert bench.sent == []
        expected = datetime(2026, 7, 26, 23, 31, tzinfo=UTC)
        found = START + timedelta(seconds=due(one) or 0)
        assert abs(found - expected) < timedelta(days=2)
        clock.move(found)
        bench.tick()
        assert [name for name, _ in bench.sent] == ["t"]


def test_a_task_without_a_state_goes_on_from_its_last_run(bench: Bench) -> None:
    """As one that was taken over does: the grid of its interval goes through the last run."""
    one = task(interval=every(1, "hours"), enabled=False)
    done = task("done", interval=every(1, "hours"), one_off=True)
    set_task(one, enabled=True, last_run_at=from_utc(at(-600)), total_run_count=7)
    set_task(done, last_run_at=from_utc(at(-6000)), total_run_count=1)
    bench.tick()
    assert (due(one), due(done)) == (3000, None)
    bench.advance(3000)
    assert bench.sent == [("t", 3000)]
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert (one.total_run_count, one.last_run_at) == (8, from_utc(at(3000)))


def test_starting_inside_the_repeated_hour_of_autumn_sends_each_occurrence_once(bench: Bench) -> None:
    start = datetime(2026, 11, 1, 6, 5, tzinfo=UTC)  # 01:05 in New York, for the second time
    with clock.pin(start):
        one = task(crontab=cron("*/15", timezone="America/New_York"))
        bench.tick()
        for _ in range(59):
            bench.advance(60)
            bench.tick()
    minutes = [round((START + timedelta(seconds=s or 0) - start).total_seconds() / 60) for s, _, _ in ledger(one)]
    assert minutes == [10, 25, 40, 55]
    assert len(bench.sent) == 4
