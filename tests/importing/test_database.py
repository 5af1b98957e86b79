"""`onebeat import database`: the tables of another django-celery-beat database, as two of its releases leave them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import connection

from onebeat.core import clock
from onebeat.importing import database
from onebeat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
from onebeat.models.instants import to_utc
from tests.engine.kit import START, TASK, Bench, at, due
from tests.importing.sources import ELSEWHERE, elsewhere, imported, report
from tests.takeover.old import LAST, Old

pytestmark = pytest.mark.django_db(transaction=True)

#: As 2.0.0 leaves it: a clocked schedule has a switch of its own.
FIRST = "0012_periodictask_expire_seconds"
SOURCE = ("database", "--from", ELSEWHERE)
REFUSED = {
    "unreadable": "minute",
    "zone": "timezone",
    "two": "interval and crontab",
    "none": "schedule: it has none",
    "args": "args must be a JSON list",
    "both ends": "expire_seconds",
    "priority": "priority",
    "unit": "period",
    "strange": "the row cannot be read",
}
#: A time that Python has not, in those databases that can hold one.
STRANGE = {"sqlite": "2026-02-30 10:00:00", "postgresql": "infinity"}


@pytest.fixture(autouse=True)
def now() -> Iterator[None]:
    with clock.pin(START):
        yield


def text(seconds: float) -> str:
    return at(seconds).strftime("%Y-%m-%d %H:%M:%S")


def fill(old: Old, *, switch: bool) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"), (3, 90, "Seconds"), (4, 1, "fortnights"))
    old.crontabs((1, "30", "*", "*", "*", "*", "UTC"), (2, "*/20-40", "*", "*", "*", "mon", "Europe/Paris"))
    old.crontabs((3, "61", "*", "*", "*", "*"), (4, "0", "*", "*", "*", "*", "Mars/Base"))
    if switch:
        rows = [{"id": key, "clocked_time": text(s), "enabled": key < 3} for key, s in ((1, 60), (2, -60), (3, -90))]
        old.insert("clockedschedule", rows)
        old.task("switched off", clocked_id=3, one_off=True)
    else:
        old.clocks((1, text(60)), (2, text(-60)))
    old.insert("solarschedule", [{"id": 1, "event": "sunset", "latitude": "-37.5", "longitude": "144.75"}])
    old.task("ran", interval_id=1, last_run_at=text(-120), total_run_count=9, args='["x"]', queue="q", priority=3)
    old.task("same value", interval_id=2, last_run_at=text(-60), total_run_count=1)
    old.task("never ran", interval_id=3, description="its notes", headers='{"h": 1}')
    old.task("overdue", crontab_id=1, last_run_at=text(-9000), total_run_count=1)
    old.task("as read", crontab_id=2, start_time=text(3600), expires=text(7200))
    old.task("once", clocked_id=1, one_off=True)
    old.task("not one-off", clocked_id=1)
    old.task("finished", clocked_id=2, one_off=True, enabled=False, last_run_at=text(-60), total_run_count=1)
    old.task("finished, on", interval_id=1, one_off=True, last_run_at=text(-600), total_run_count=1)
    old.task("missed", clocked_id=2, one_off=True)
    old.task("sun", solar_id=1, enabled=False)
    old.task("unreadable", crontab_id=3)
    old.task("zone", crontab_id=4)
    old.task("two", interval_id=1, crontab_id=1)
    old.task("none")
    old.task("args", interval_id=1, args="(1,)")
    old.task("both ends", interval_id=1, expires=text(60), expire_seconds=5)
    old.task("priority", interval_id=1, priority=256)
    old.task("unit", interval_id=4)
    if connection.vendor in STRANGE:
        old.task("strange", interval_id=1, last_run_at=STRANGE[connection.vendor])


@pytest.mark.parametrize("migration", [FIRST, LAST])
def test_every_task_is_carried_or_named(migration: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PORTION", 6)
    with elsewhere(migration) as old:
        fill(old, switch=migration == FIRST)
        shown = report(*SOURCE)
        assert not PeriodicTask.objects.exists() and not IntervalSchedule.objects.exists()
        done = report(*SOURCE, "--apply")
        assert (shown["code"], done["code"]) == (1, 1) and shown["rows"] == done["rows"]
        refused = {name: row["why"] for name, row in done["rows"].items() if row["outcome"] == "refused"}
        assert set(refused) == set(REFUSED) - (set() if connection.vendor in STRANGE else {"strange"})
        assert not [(name, why) for name, why in refused.items() if REFUSED[name] not in why]
        assert done["counts"]["new"] == 11 + (migration == FIRST)

        found = {row.name: row for row in PeriodicTask.objects.all()}
        check(found, done["rows"])
        if migration == FIRST:
            assert "switched off" in done["rows"]["switched off"]["notes"][0] and not found["switched off"].enabled
        bench = Bench()
        bench.tick()
        # Of the times that nobody kept the newest, and an instant that has passed and never came.
        assert sorted(bench.sent) == [("missed", -60), ("overdue", -1800)]
        assert [due(found[name]) for name in ("ran", "same value", "never ran", "once")] == [180, 240, 90, 60]
        assert due(found["finished, on"]) is None and due(found["finished"]) is None

        before = list(PeriodicTask.objects.order_by("pk").values())
        again = report(*SOURCE, "--apply", "--replace")
        assert again["counts"] == {"same": len(found), "refused": len(refused)}
        assert list(PeriodicTask.objects.order_by("pk").values()) == before


def check(found: dict[str, PeriodicTask], rows: dict[str, Any]) -> None:
    ran = found["ran"]
    assert (ran.total_run_count, ran.args, ran.queue, ran.priority, ran.enabled) == (9, '["x"]', "q", 3, True)
    assert when(ran.last_run_at) == at(-120) and ran.interval == found["same value"].interval
    assert IntervalSchedule.objects.filter(every=5, period="minutes").count() == 1
    new = found["never ran"]
    assert (new.last_run_at, new.description, new.headers) == (None, "its notes", '{"h": 1}')
    assert new.interval and new.interval.period == "seconds"
    read = found["as read"]
    assert read.crontab and (read.crontab.minute, read.crontab.day_of_week) == ("*/20", "1")
    assert "minute" in rows["as read"]["notes"][0] and str(read.crontab.timezone) == "Europe/Paris"
    assert (when(read.start_time), when(read.expires)) == (at(3600), at(7200))
    assert found["not one-off"].one_off and "one-off" in rows["not one-off"]["notes"][0]
    assert not found["finished"].enabled and found["finished, on"].enabled and not found["sun"].enabled
    assert CrontabSchedule.objects.count() == 2


def when(value: datetime | None) -> datetime | None:
    return None if value is None else to_utc(value)


def test_one_of_onebeat_s_is_read_as_one_and_one_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    with elsewhere(LAST) as old:
        old.run("CREATE TABLE onebeat_taskoptions (task_id INTEGER PRIMARY KEY)")
        old.crontabs((1, "0", "9", "*", "*", "fri#2"))
        old.task("second Friday", crontab_id=1)
        old.task("with options", crontab_id=1)
        old.run(f"INSERT INTO onebeat_taskoptions SELECT id FROM {TASK} WHERE name LIKE 'with%'")
        done = report(*SOURCE, "--apply")
        assert done["code"] == 1 and "onebeat_taskoptions" in done["rows"]["with options"]["why"]
        assert CrontabSchedule.objects.get().day_of_week == "5#2"

        old.intervals((1, 5, "minutes"))
        for number in range(4):
            old.task(f"t{number}", interval_id=1)
        monkeypatch.setattr(database, "_PORTION", 2)
        read, turns = database.Tables._read, iter([0])

        def lost(self: Any, keys: Any) -> Any:
            if next(turns, None) is None:
                old.run("DROP TABLE django_celery_beat_periodictask")
            return read(self, keys)

        monkeypatch.setattr(database.Tables, "_read", lost)
        code, told = imported(*SOURCE, "--apply")
        assert code == 2 and "run it again" in told
        code, told = imported(*SOURCE)
        assert code == 2 and "has no table django_celery_beat_periodictask" in told
