"""New time zone data change plans that were made with the old, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from onebeat.core.recurrence import tzdata_version
from onebeat.models import CrontabSchedule, Fact, PeriodicTask, TaskState
from onebeat.store.zone_data import ZoneData
from tests.engine.kit import Bench, another_session, at, every, seconds, task

HOUR = timedelta(hours=1)


def daily(name: str, **fields: object) -> PeriodicTask:
    crontab, _ = CrontabSchedule.objects.get_or_create(minute="0", hour="12", timezone="Europe/Paris")
    return task(name, crontab=crontab, **fields)


def due(one: PeriodicTask) -> float | None:
    return seconds(TaskState.objects.get(pk=one.pk).due_at)


def as_if_planned_with_other_data(one: PeriodicTask) -> None:
    """An hour late, as where a country has given up its summer time since."""
    state = TaskState.objects.get(pk=one.pk)
    assert state.due_at is not None
    TaskState.objects.filter(pk=one.pk).update(due_at=state.due_at + HOUR, wake_at=state.due_at + HOUR)


def test_crontabs_are_planned_again_when_the_data_are_others(bench: Bench) -> None:
    tasks = [daily(f"t{number}") for number in range(5)]
    interval = task("interval", interval=every(7, "hours"))
    bench.tick()
    right = due(tasks[0])
    assert right == HOUR.total_seconds()
    for one in (*tasks, interval):
        as_if_planned_with_other_data(one)
    Fact.objects.filter(pk="tzdata").update(value="2001a")
    started = ZoneData("default", 2)
    for _ in range(4):  # three portions and the end
        started.step()
    assert [due(one) for one in tasks] == [right] * 5
    assert due(interval) == 8 * HOUR.total_seconds()
    assert Fact.objects.get(pk="tzdata").value == tzdata_version()
    bench.advance(HOUR.total_seconds())
    assert sorted(bench.sent) == [(one.name, right) for one in tasks]


def test_the_same_data_move_nothing(bench: Bench) -> None:
    one = daily("t")
    bench.tick()
    as_if_planned_with_other_data(one)
    before = due(one)
    started = ZoneData("default", 100)
    started.step()
    started.step()
    assert due(one) == before


def test_what_is_due_already_and_what_is_disabled_stay(bench: Bench) -> None:
    late, off = daily("late"), daily("off", enabled=False)
    bench.tick()
    TaskState.objects.filter(pk=late.pk).update(due_at=at(-30), wake_at=at(0))
    Fact.objects.filter(pk="tzdata").update(value="2001a")
    started = ZoneData("default", 100)
    started.step()
    started.step()
    assert (due(late), due(off)) == (-30, None)


def test_a_host_with_older_data_plans_nothing_again(bench: Bench) -> None:
    one = daily("t")
    bench.tick()
    as_if_planned_with_other_data(one)
    before = due(one)
    Fact.objects.filter(pk="tzdata").update(value="2999z")
    started = ZoneData("default", 100)
    started.step()
    started.step()
    assert due(one) == before
    assert Fact.objects.get(pk="tzdata").value == "2999z"


def test_what_is_held_at_that_moment_is_planned_later(bench: Bench) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time; MariaDB's optimizer locks every row of so small a table")
    tasks = [daily(f"t{number}") for number in range(3)]
    bench.tick()
    right = due(tasks[0])
    for one in tasks:
        as_if_planned_with_other_data(one)
    Fact.objects.filter(pk="tzdata").update(value="2001a")
    started = ZoneData("default", 100)
    with another_session() as cursor:
        cursor.execute("SELECT 1 FROM onebeat_taskstate WHERE task_id = %s FOR UPDATE", [tasks[1].pk])
        started.step()
        started.step()
        assert due(tasks[1]) != right and due(tasks[0]) == right
        assert Fact.objects.get(pk="tzdata").value == "2001a"
    started.step()
    assert [due(one) for one in tasks] == [right] * 3
    assert Fact.objects.get(pk="tzdata").value == tzdata_version()
