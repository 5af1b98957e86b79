"""`loaddata`: schedules adopt the rows of their values, and what the fixture points at them follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from onebeat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
    TaskState,
)
from tests.engine.kit import START, Bench

pytestmark = pytest.mark.django_db

APP = "django_celery_beat"
EVERY = {"every": 5, "period": "minutes"}


def interval(key: int | None, every: int = 5) -> dict[str, Any]:
    return {"model": f"{APP}.intervalschedule", "pk": key, "fields": {"every": every, "period": "minutes"}}


def task(key: int, **fields: Any) -> dict[str, Any]:
    needed = {"name": f"task {key}", "task": "t", "date_changed": "2026-01-01T00:00:00Z"}
    return {"model": f"{APP}.periodictask", "pk": key, "fields": {**needed, **fields}}


def load(path: Path, *rows: dict[str, Any]) -> None:
    (path / "rows.json").write_text(json.dumps(rows))
    call_command("loaddata", str(path / "rows.json"), verbosity=0)


def uses() -> dict[str, tuple[int, int]]:
    """Each task's key of its interval, and what that is."""
    rows = PeriodicTask.objects.filter(interval__isnull=False)
    return {row.name: (row.interval_id, row.interval.every) for row in rows.select_related("interval")}


def test_tasks_follow_whether_they_come_before_the_schedule_or_after(tmp_path: Path) -> None:
    mine = IntervalSchedule.objects.create(**EVERY).pk
    other = mine + 70
    load(tmp_path, task(501, interval=other), interval(other), task(502, interval=other), interval(None))
    assert uses() == {"task 501": (mine, 5), "task 502": (mine, 5)}
    assert IntervalSchedule.objects.count() == 1


def test_keys_that_mean_other_rows_here(tmp_path: Path) -> None:
    five, ten = (IntervalSchedule.objects.create(every=n, period="minutes").pk for n in (5, 10))
    PeriodicTask.objects.create(id=400, name="mine", task="t", interval_id=ten)
    # The other way round in the file, and one more that is new.
    load(tmp_path, task(501, interval=ten), interval(ten, 5), interval(five, 10), interval(ten + 70, 20),
         task(502, interval=five), task(503, interval=ten + 70))  # fmt: skip
    assert uses() == {
        "mine": (ten, 10), "task 501": (five, 5), "task 502": (ten, 10), "task 503": (ten + 70, 20),
    }  # fmt: skip


def test_another_run_in_the_same_transaction_knows_nothing_of_the_first(tmp_path: Path) -> None:
    five, ten = (IntervalSchedule.objects.create(every=n, period="minutes").pk for n in (5, 10))
    with transaction.atomic():
        load(tmp_path, interval(ten, 5), task(501, interval=ten))
        load(tmp_path, task(502, interval=ten))
    assert uses() == {"task 501": (five, 5), "task 502": (ten, 10)}


def test_every_kind_adopts_in_any_spelling(tmp_path: Path) -> None:
    crontab = CrontabSchedule.objects.create(minute="0,30", day_of_week="1-5", timezone="Europe/Paris").pk
    clocked = ClockedSchedule.objects.create(clocked_time=START).pk
    solar = SolarSchedule.objects.create(event="sunset", latitude=1, longitude=2).pk
    texts = {"minute": "30, 0", "hour": "*", "day_of_month": "*", "month_of_year": "*", "day_of_week": "mon-fri"}
    load(
        tmp_path,
        {"model": f"{APP}.crontabschedule", "pk": 901, "fields": {**texts, "timezone": "europe/paris"}},
        {"model": f"{APP}.clockedschedule", "pk": 902, "fields": {"clocked_time": "2026-03-10T11:00:00+01:00"}},
        {
            "model": f"{APP}.solarschedule",
            "pk": 903,
            "fields": {"event": "sunset", "latitude": "1.0", "longitude": "2"},
        },
        task(501, crontab=901), task(502, clocked=902, one_off=True), task(503, solar=903),
    )  # fmt: skip
    found = PeriodicTask.objects.order_by("pk").values_list("crontab", "clocked", "solar")
    assert list(found) == [(crontab, None, None), (None, clocked, None), (None, None, solar)]


@pytest.mark.django_db(transaction=True)
def test_what_was_dumped_is_loaded_again(tmp_path: Path) -> None:
    """All of the app, engine's tables too: into an empty database, over itself, and beside rows of the same values."""
    crontab = CrontabSchedule.objects.create(minute="0", hour="9", day_of_week="mon#2", timezone="Europe/Paris")
    fields = [
        {"interval": IntervalSchedule.objects.create(**EVERY)}, {"crontab": crontab},
        {"clocked": ClockedSchedule.objects.create(clocked_time=START), "one_off": True},
        {"solar": SolarSchedule.objects.create(event="sunset", latitude=1, longitude=2)},
    ]  # fmt: skip
    tasks = [PeriodicTask.objects.create(name=f"{n}", task="t", args=[n], **one) for n, one in enumerate(fields)]
    TaskOptions.objects.create(task=tasks[0], jitter_seconds=7)
    Bench().tick()
    file, before = tmp_path / "all.json", dumped()
    file.write_text(before)
    call_command("loaddata", str(file), verbosity=0)
    assert dumped() == before
    call_command("flush", interactive=False, verbosity=0)
    call_command("loaddata", str(file), verbosity=0)
    assert dumped() == before
    states = list(TaskState.objects.order_by("pk").values_list("pk", "due_at"))
    call_command("flush", interactive=False, verbosity=0)
    IntervalSchedule.objects.create(every=1, period="hours")
    again = IntervalSchedule(id=tasks[0].interval_id + 70, **EVERY)
    again.save()
    call_command("loaddata", str(file), verbosity=0)
    assert PeriodicTask.objects.get(name="0").interval_id == again.pk
    assert TaskState.objects.get(task__name="0").interval == again.pk
    assert list(TaskState.objects.order_by("pk").values_list("pk", "due_at")) == states


def dumped() -> str:
    from io import StringIO

    told = StringIO()
    call_command("dumpdata", APP, stdout=told)
    return told.getvalue()
