"""The instants of a plan are the same under every setting of time zones; only the people's columns look different."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.processes import run_python
from tests.scratch import Scratch, Templates

pytestmark = pytest.mark.long("mariadb", "sqlite")

#: A day before New York's clocks go forward, and the morning on which they have gone back.
SPRING = "2026-03-07T12:00:00+00:00"
AUTUMN = "2026-11-01T04:45:00+00:00"

ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")
COMBINATIONS = [
    {
        "ONEBEAT_TEST_USE_TZ": use_tz,
        "ONEBEAT_TEST_TIME_ZONE": zone,
        "ONEBEAT_TEST_CELERY_TIMEZONE": celery_zone,
        "ONEBEAT_TEST_TZ_AWARE": aware,
    }
    for use_tz, zone, celery_zone, aware in itertools.product("10", ZONES, ("UTC", "Europe/Paris"), "10")
]


def plan(now: str) -> dict[str, Any]:
    """In another process: make one task of each kind at `now`, let a scheduler run for a day, say what it planned."""
    from onebeat.conf import Settings
    from onebeat.core import clock
    from onebeat.dispatch.base import Accepted
    from onebeat.engine.assembly import Assembly
    from onebeat.engine.tick import Engine
    from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, Occurrence, PeriodicTask, TaskState
    from onebeat.models.instants import from_utc

    class Taking:
        def ready(self) -> bool:
            return True

        def publish(self, messages: Any, *, singly: bool = False) -> Any:
            return [Accepted()] * len(messages)

        def close(self) -> None: ...

    start = datetime.fromisoformat(now)
    with clock.pin(start):
        for minute, hour in (("30", "2"), ("30", "1"), ("*/30", "*")):
            crontab, _ = CrontabSchedule.objects.get_or_create(minute=minute, hour=hour, timezone="America/New_York")
            PeriodicTask.objects.create(name=f"{minute} {hour}", task="t", crontab=crontab)
        hourly, _ = IntervalSchedule.objects.get_or_create(every=1, period="hours")
        PeriodicTask.objects.create(
            name="hourly",
            task="t",
            interval=hourly,
            start_time=from_utc(start + timedelta(minutes=20, microseconds=7)),
            expires=from_utc(start + timedelta(hours=30)),
        )
        clocked, _ = ClockedSchedule.objects.get_or_create(
            clocked_time=from_utc(start + timedelta(minutes=31, microseconds=123456))
        )
        PeriodicTask.objects.create(name="once", task="t", clocked=clocked, one_off=True)
        engine = Engine(Assembly(Taking(), Settings()))
        for hour in range(25):
            clock.move(start + timedelta(hours=hour))
            engine.tick()
        engine.close()
    sent = Occurrence.objects.order_by("due_at", "task_name").values_list("task_name", "due_at", "state")
    waiting = TaskState.objects.order_by("pk").values_list("task__name", "due_at")
    return {
        "sent": [[name, due_at.isoformat(), state] for name, due_at, state in sent],
        "waiting": [[name, due_at and due_at.isoformat()] for name, due_at in waiting],
        "enabled": list(PeriodicTask.objects.filter(enabled=False).values_list("name", flat=True)),
    }


#: Every combination on SQLite in spring; elsewhere those that differ in what a column holds.
FEW = [
    {**COMBINATIONS[0], "ONEBEAT_TEST_USE_TZ": use_tz, "ONEBEAT_TEST_TIME_ZONE": zone}
    for use_tz, zone in (("1", "UTC"), ("0", "America/New_York"))
]


@pytest.mark.parametrize("now", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_a_plan_does_not_depend_on_settings_of_time_zones(database: Scratch, now: str, templates: Templates) -> None:
    expected = None
    for combination in COMBINATIONS if database.vendor == "sqlite" and now == SPRING else FEW:
        with Scratch.open(database.kind, templates.of(database.kind)) as scratch:
            found = run_python({**scratch.env, **combination}, plan, now)
        expected = expected or found
        assert found == expected, combination
    assert expected is not None
    names = [name for name, _, _ in expected["sent"]]
    assert {"30 1", "hourly", "once"} <= set(names)
    assert expected["enabled"] == ["once"]
    at = {name: due_at for name, due_at, _ in expected["sent"]}
    assert at["once"].endswith(".123456+00:00")


def test_in_the_repeated_hour_every_pass_of_a_wildcard_rule_is_an_occurrence_of_its_own(database: Scratch) -> None:
    """With USE_TZ off and a local TIME_ZONE, the two 01:30s have one wall clock time; the ledger keeps them apart."""
    env = {"ONEBEAT_TEST_USE_TZ": "0", "ONEBEAT_TEST_TIME_ZONE": "America/New_York"}
    found = run_python({**database.env, **env}, plan, AUTUMN)
    halves = [due_at for name, due_at, _ in found["sent"] if name == "*/30 *"]
    first = datetime(2026, 11, 1, 5, 0, tzinfo=UTC)
    assert [datetime.fromisoformat(one) for one in halves[:6]] == [first + timedelta(minutes=30) * n for n in range(6)]
    assert [due_at for name, due_at, _ in found["sent"] if name == "30 1"] == ["2026-11-01T05:30:00+00:00"]
