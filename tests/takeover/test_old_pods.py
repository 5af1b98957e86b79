"""Pods with the real django-celery-beat 2.9 run on after the migration: what they insert, change and delete is stored
and planned, and a duplicate schedule is the one thing that they are refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.processes import run_python
from tests.scratch import Scratch
from tests.takeover.real import real


def newer() -> None:
    """What the new pods have written: a task with everything of ours around it, and one that an old pod will change."""
    from onebeat.core import clock
    from tests.engine.kit import START, Bench, every, options, task

    with clock.pin(START):
        bench = Bench()
        for name in ("deleted there", "changed there", "disabled there"):
            options(task(name, interval=every(10)), missed="all", tags="a")
        bench.work(10)
        bench.engine.close()


def old_pod() -> dict[str, str]:
    """All that their models offer, each by itself: what it raised, or "" if it was done."""
    from datetime import UTC, datetime, timedelta

    from celery import schedules
    from django.db import transaction
    from django_celery_beat import models as m

    noon = datetime(2040, 1, 1, 12, tzinfo=UTC)
    ten = {"every": 10, "period": "seconds"}
    day = {"minute": "0", "hour": "4", "timezone": "UTC"}
    sun = {"event": "sunset", "latitude": 1, "longitude": 2}

    def named(name: str) -> Any:
        return m.PeriodicTask.objects.get(name=name)

    def edit(row: Any, **values: Any) -> None:
        for name, value in values.items():
            setattr(row, name, value)
        row.full_clean(exclude=["last_run_at"])
        row.save()

    work = {
        "crontab": lambda: m.CrontabSchedule.objects.create(**day),
        "clocked": lambda: m.ClockedSchedule.objects.create(clocked_time=noon),
        "solar": lambda: m.SolarSchedule.objects.create(**sun),
        "interval again": lambda: m.IntervalSchedule.objects.create(**ten),
        "crontab again": lambda: m.CrontabSchedule(**day).save(),
        "clocked again": lambda: m.ClockedSchedule.objects.bulk_create([m.ClockedSchedule(clocked_time=noon)]),
        "solar again": lambda: m.SolarSchedule.objects.create(**sun),
        "interval found": lambda: m.IntervalSchedule.objects.get_or_create(**ten),
        "clocked found": lambda: m.ClockedSchedule.objects.get_or_create(clocked_time=noon),
        "interval from_schedule": lambda: m.IntervalSchedule.from_schedule(schedules.schedule(timedelta(seconds=10))),
        "crontab updated": lambda: m.CrontabSchedule.objects.filter(**day).update(minute="30"),
        "crontab edited": lambda: edit(m.CrontabSchedule.objects.get(), minute="45"),
        "task": lambda: m.PeriodicTask.objects.create(name="new", task="t", crontab=m.CrontabSchedule.objects.get()),
        "one-off": lambda: m.PeriodicTask.objects.bulk_create(
            [m.PeriodicTask(name="once", task="t", clocked=m.ClockedSchedule.objects.get(), one_off=True)]
        ),
        "passing task": lambda: m.PeriodicTask.objects.create(
            name="passing", task="t", interval=m.IntervalSchedule.objects.get()
        ),
        "passing task deleted": lambda: named("passing").delete(),
        "changed": lambda: edit(named("changed there"), args='["there"]', total_run_count=7),
        "disabled": lambda: m.PeriodicTask.objects.filter(name="disabled there").update(enabled=False),
        "told": lambda: m.PeriodicTasks.update_changed(),
        "deleted": lambda: named("deleted there").delete(),
        "schedule deleted": lambda: m.SolarSchedule.objects.all().delete(),
    }
    found = {}
    for name, one in work.items():
        try:
            with transaction.atomic():
                one()
            found[name] = ""
        except Exception as error:
            found[name] = type(error).__name__
    return found


def newer_again() -> dict[str, Any]:
    """What a scheduler makes of it: what each task is planned for, what is sent, and whose plans are there."""
    from onebeat.core import clock
    from onebeat.models import PeriodicTask, TaskState
    from tests.engine.kit import Bench, at, seconds, sweep

    with clock.pin(at(11)):
        bench = Bench()
        bench.tick()
        sweep()
        bench.tick()
        plans = dict(TaskState.objects.values_list("pk", "due_at"))
        tasks = dict(PeriodicTask.objects.values_list("pk", "name"))
        bench.work(10)
        bench.engine.close()
    return {
        "plans": {name: seconds(plans[key]) for key, name in tasks.items() if name != "new"},
        "new is planned": plans[next(key for key, name in tasks.items() if name == "new")] is not None,
        "without a task": len(plans.keys() - tasks.keys()),
        "sent": [[name, bench.outbox.messages[number].args] for number, (name, _) in enumerate(bench.sent)],
    }


def test_old_pods_work_on_tables_that_are_migrated(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("one host, so no old pods beside the new ones")
    run_python(database.env, newer)
    found = real(database, old_pod)
    again = ("interval again", "crontab again", "clocked again", "solar again")
    assert found == {name: "IntegrityError" if name in again else "" for name in found}
    seen = run_python(database.env, newer_again)
    noon = seen["plans"].pop("once")
    assert seen == {
        "plans": {"changed there": 20, "disabled there": None},
        "new is planned": True,
        "without a task": 0,
        "sent": [["changed there", ["there"]]],
    }
    assert noon > 400_000_000
