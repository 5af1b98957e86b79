"""The old columns, kept up for those who read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from onebeat.core import clock
from onebeat.management.status import lines
from onebeat.models import ClockedSchedule, PeriodicTask
from onebeat.models.instants import from_utc
from onebeat.queries import status
from tests.engine.kit import SETTINGS, START, Bench, at, clocked, every, set_task, sweep, task
from tests.processes import run_python
from tests.scratch import Scratch


def test_counts_and_last_runs_of_tasks_that_ran_differently_often(bench: Bench) -> None:
    made = {amount: task(f"every {amount}", interval=every(amount)) for amount in (1, 2, 5, 100)}
    made[0] = task("once", clocked=clocked(at(3)))
    bench.work(10)
    bench.engine.run_counts.write()
    rows = {one.name: (one.total_run_count, one.last_run_at) for one in PeriodicTask.objects.all()}
    assert rows == {
        "every 1": (10, from_utc(at(10))),
        "every 2": (5, from_utc(at(10))),
        "every 5": (2, from_utc(at(10))),
        "every 100": (0, None),
        "once": (1, from_utc(at(3))),
    }
    bench.engine.run_counts.write()
    assert PeriodicTask.objects.get(name="every 1").total_run_count == 10


def test_closing_writes_what_is_owed(bench: Bench) -> None:
    bench.engine.parts.settings = replace(SETTINGS, run_state_seconds=3600)  # not before, however slow this machine is
    one = task(interval=every(5))
    bench.work(5)
    one.refresh_from_db()
    assert one.total_run_count == 0
    bench.engine.close()
    one.refresh_from_db()
    assert one.total_run_count == 1


def test_nothing_is_decided_by_them(bench: Bench) -> None:
    """Users' code writes `last_run_at`: it moves no plan."""
    one = task(interval=every(10))
    bench.tick()
    set_task(one, last_run_at=from_utc(at(9)), total_run_count=99)
    sweep()
    PeriodicTask.objects.update(last_run_at=None)
    bench.work(10)
    assert bench.sent == [("t", 10)]


def test_a_write_of_theirs_is_no_change_of_the_task(bench: Bench) -> None:
    one = task(interval=every(10))
    before = PeriodicTask.objects.get(pk=one.pk).date_changed
    bench.work(10)
    bench.engine.run_counts.write()
    assert PeriodicTask.objects.get(pk=one.pk).date_changed == before


def test_a_task_deleted_before_its_count_was_written_is_forgotten(bench: Bench) -> None:
    one = task(interval=every(5))
    bench.work(5)
    one.delete()
    bench.engine.run_counts.write()
    assert not bench.engine.run_counts


def test_a_thousand_tasks_are_written_in_a_few_statements(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(1000)])
    bench.work(1)
    bench.advance(7)
    bench.advance(2)
    seen: list[str] = []

    def count(execute: Any, statement: str, *args: Any) -> Any:
        seen.append(statement)
        return execute(statement, *args)

    with connection.execute_wrapper(count):
        bench.engine.run_counts.write()
    assert PeriodicTask.objects.filter(total_run_count=1).count() == 1000
    assert len(seen) < 15


def test_a_look_at_the_engine(bench: Bench) -> None:
    task("waits", interval=every(10))
    bad = task("bad", enabled=False)
    set_task(bad, args="nothing", enabled=True)
    bench.tick()
    sweep()
    bench.outbox.unavailable = True
    bench.advance(25)
    task("new")
    found = status.status("default")
    assert (found["waiting"], found["due"], found["lag_seconds"], found["unplanned_changes"]) == (1, 1, 15.0, 1)
    (scheduler,) = found["schedulers"]
    assert (scheduler["alive"], scheduler["able"]) == (True, False)
    assert [one["name"] for one in found["quarantined"]] == ["bad"]
    text = "\n".join(lines(found))
    assert "its broker does not answer" in text
    assert "quarantined: bad" in text


def last_runs_in_the_repeated_hour() -> list[Any]:
    """In another process: two runs, one in each pass of 01:30 in New York."""
    bench = Bench()
    start = datetime(2026, 11, 1, 5, tzinfo=UTC)
    found = []
    with clock.pin(start):
        bench.tick()
        one = task(interval=every(30, "minutes"))
        bench.tick()
        for half in range(1, 5):
            clock.move(start + half * timedelta(minutes=30))
            bench.tick()
            bench.engine.run_counts.write()
            one.refresh_from_db()
            found.append([one.total_run_count, str(one.last_run_at)])
        bench.engine.close()
        nominal = [(START + timedelta(seconds=seconds or 0)).isoformat() for _, seconds in bench.sent]
        return [found, nominal]


def test_last_runs_are_written_as_the_project_writes_times(database: Scratch) -> None:
    env = {**database.env, "ONEBEAT_TEST_USE_TZ": "0", "ONEBEAT_TEST_TIME_ZONE": "America/New_York"}
    found, nominal = run_python(env, last_runs_in_the_repeated_hour)
    assert [datetime.fromisoformat(one).astimezone(UTC).strftime("%H:%M") for one in nominal] == [
        "05:30", "06:00", "06:30", "07:00",
    ]  # fmt: skip
    local = ["01:30:00", "01:00:00", "01:30:00", "02:00:00"]
    assert found == [[number, f"2026-11-01 {text}"] for number, text in enumerate(local, start=1)]


def seconds_of_people(start_time: str, expires: str, clocked_time: str) -> list[Any]:
    """In another process: naive times of a project with USE_TZ off, and what runs."""
    bench = Bench()
    with clock.pin(datetime(2026, 3, 10, 14, tzinfo=UTC)):  # 10:00 in New York
        bench.tick()
        task("span", interval=every(1, "hours"), start_time=datetime.fromisoformat(start_time),
             expires=datetime.fromisoformat(expires))  # fmt: skip
        row, _ = ClockedSchedule.objects.get_or_create(clocked_time=datetime.fromisoformat(clocked_time))
        task("once", clocked=row)
        for _ in range(24):
            bench.advance(600)
            sweep()
        bench.engine.close()
        return [[name, (START + timedelta(seconds=seconds or 0)).isoformat()] for name, seconds in bench.sent]


def test_naive_times_are_wall_clock_of_the_projects_zone(database: Scratch) -> None:
    env = {**database.env, "ONEBEAT_TEST_USE_TZ": "0", "ONEBEAT_TEST_TIME_ZONE": "America/New_York"}
    found = run_python(env, seconds_of_people, "2026-03-10 10:30:00", "2026-03-10 12:30:00", "2026-03-10 11:10:00")
    assert found == [
        ["span", "2026-03-10T14:30:00+00:00"],
        ["once", "2026-03-10T15:10:00+00:00"],
        ["span", "2026-03-10T15:30:00+00:00"],
        ["span", "2026-03-10T16:30:00+00:00"],
    ]
