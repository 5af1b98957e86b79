"""`onebeat import settings`, and what holds for every source: shown first, written once, nothing of here is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery import schedules
from celery.schedules import crontab, solar
from django.db import connection

from onebeat.core import clock
from onebeat.dispatch.celery.schedules import clocked
from onebeat.importing import carry
from onebeat.models import Change, CrontabSchedule, IntervalSchedule, PeriodicTask
from onebeat.models.instants import from_utc, to_utc
from tests.engine.kit import START, TASK, Bench, at, cron, due, every, sql, task
from tests.engine.kit import clocked as instant
from tests.importing.sources import imported, outcomes, report
from tests.project.tasks import add

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def now() -> Iterator[None]:
    with clock.pin(START):
        yield


class Odd(schedules.schedule):
    def is_due(self, last_run_at: Any) -> Any:
        return True, 1


GOOD = {
    "plain": {"task": "a.b", "schedule": 30.0, "args": (1, "x"), "kwargs": {"k": [1]}},
    "days": {"task": "a.b", "schedule": crontab(minute=0, hour={7, 9}, day_of_week="mon,wed")},
    "half": {"task": "a.b", "schedule": timedelta(seconds=1.5), "name": "not this"},
    "sun": {"task": "a.b", "schedule": solar("sunset", -37.5, 144.75)},
    "once": {"task": "a.b", "schedule": clocked(at(60))},
    "all": {
        "task": "a.b",
        "schedule": 60,
        "options": {
            "queue": "q",
            "priority": 3,
            "expires": 5,
            "headers": {"h": 1},
            "exchange": "e",
            "routing_key": "r",
        },
        "enabled": False,
    },
    "as Celery read it": {"task": "a.b", "schedule": crontab(minute="*/20-40")},
}
BAD: dict[str, tuple[Any, str]] = {
    "key": ({"task": "a.b", "schedule": 1, "tags": []}, "tags: []"),
    "args": ({"task": "a.b", "schedule": 1, "args": [object()]}, "args: JSON cannot hold this"),
    "no number": ({"task": "a.b", "schedule": 1, "args": [float("nan")]}, "args"),
    "no task": ({"schedule": 1}, "task"),
    "no schedule": ({"task": "a.b"}, "schedule"),
    "no time": ({"task": "a.b", "schedule": 0}, "every"),
    "odd": ({"task": "a.b", "schedule": Odd(5)}, "is_due"),
    "text": ("a.b", "an entry is a dict"),
    "signature": ({"task": add.s(1), "schedule": 1}, "task: tests.project.tasks.add(1) is a signature"),
    "list as task": ({"task": [1], "schedule": 1}, "task: a Celery task or its registered name is needed"),
    "x" * 201: ({"task": "a.b", "schedule": 1}, "name"),
}


def test_it_is_shown_first_and_written_when_asked(declared: dict[str, Any]) -> None:
    declared.update(GOOD)
    for words in ((), ("--dry-run",)):
        code, text = imported("settings", *words)
        assert code == 0 and "+ plain: a.b, every 30 seconds" in text and "7 would be made" in text
        assert "Nothing was written" in text
    assert not PeriodicTask.objects.exists() and not IntervalSchedule.objects.exists() and not Change.objects.exists()
    done = report("settings", "--apply")
    assert done["code"] == 0 and done["applied"] and done["counts"] == {"new": 7}
    assert "minute" in done["rows"]["as Celery read it"]["notes"][0]

    found = {row.name: row for row in PeriodicTask.objects.all()}
    assert (found["plain"].interval.every, found["plain"].interval.period) == (30, "seconds")
    assert (json.loads(found["plain"].args), json.loads(found["plain"].kwargs)) == ([1, "x"], {"k": [1]})
    assert (found["days"].crontab.hour, found["days"].crontab.day_of_week) == ("7,9", "1,3")
    assert (found["half"].interval.every, found["half"].interval.period) == (1_500_000, "microseconds")
    assert found["sun"].solar.event == "sunset"
    assert to_utc(found["once"].clocked.clocked_time) == at(60) and found["once"].one_off
    one = found["all"]
    assert (one.queue, one.priority, one.expire_seconds, one.exchange, one.routing_key) == ("q", 3, 5, "e", "r")
    assert json.loads(one.headers) == {"h": 1} and not one.enabled
    assert found["as Celery read it"].crontab.minute == "*/20"

    bench = Bench()
    bench.tick()
    assert due(found["plain"]) == 30 and due(found["once"]) == 60 and bench.sent == []

    before = list(PeriodicTask.objects.order_by("pk").values())
    clock.move(at(5))
    assert report("settings", "--apply", "--replace")["counts"] == {"same": 7}
    assert list(PeriodicTask.objects.order_by("pk").values()) == before


def test_what_cannot_be_carried_is_named_and_stops_nothing(
    declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carry, "_PORTION", 4)
    declared.update({name: entry for name, (entry, _) in BAD.items()} | GOOD)
    shown, done = report("settings"), report("settings", "--apply")
    assert (shown["code"], done["code"]) == (1, 1)
    assert shown["rows"] == done["rows"]
    for name, (_, words) in BAD.items():
        assert done["rows"][name]["outcome"] == "refused" and words in done["rows"][name]["why"], done["rows"][name]
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == set(GOOD)
    code, text = imported("settings")
    assert code == 1 and "7 are here already; 11 cannot be carried." in text
    assert imported("settings", "--verbosity", "0") == (1, "11 not carried")


NOTED = {
    "countdown": ({"options": {"countdown": 3}}, "options.countdown is left out: the schedule says when"),
    "eta": ({"options": {"eta": START}}, "options.eta is left out"),
    "task_id": ({"options": {"task_id": "x"}}, "options.task_id is left out"),
    "unknown": ({"options": {"colour": "red"}}, "options.colour is left out"),
    "time_limit": ({"options": {"time_limit": -1}}, "options.time_limit is left out"),
    "relative": ({"relative": True}, "relative has no effect"),
    "relative schedule": ({"schedule": schedules.schedule(5, relative=True)}, "relative has no effect"),
}
EXTRA = {"time_limit": 5, "soft_time_limit": 4.5, "compression": "zlib", "serializer": "json", "shadow": "s",
         "ignore_result": True, "delivery_mode": 1, "link": [{"task": "a.c"}]}  # fmt: skip


def test_every_option_of_a_message_is_carried_or_named_and_the_job_is_there(declared: dict[str, Any]) -> None:
    declared.update({name: {"task": "a.b", "schedule": 1, **entry} for name, (entry, _) in NOTED.items()})
    declared["carried"] = {"task": add, "schedule": 1, "options": {**EXTRA, "queue": "q", "expires": 1.5}}
    done = report("settings", "--apply")
    assert {row["outcome"] for row in done["rows"].values()} == {"new"} and done["code"] == 0
    for name, (_, words) in NOTED.items():
        assert any(words in note for note in done["rows"][name]["notes"]), done["rows"][name]
    row = PeriodicTask.objects.get(name="carried")
    assert (row.task, row.queue, row.expire_seconds) == ("tests.project.tasks.add", "q", 2)
    assert json.loads(row.onebeat_options.extra) == EXTRA
    assert set(report("settings", "--apply", "--replace")["counts"]) == {"same"}
    declared["carried"]["options"]["time_limit"] = 6
    assert report("settings")["rows"]["carried"]["why"] == "another extra here"
    report("settings", "--apply", "--replace")
    assert json.loads(PeriodicTask.objects.get(name="carried").onebeat_options.extra)["time_limit"] == 6


def test_what_is_here_stays_and_is_listed_unless_it_is_to_be_replaced(
    declared: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    declared["a"] = {"task": "x.y", "schedule": 60, "args": [1]}
    declared["b"] = {"task": "x.y", "schedule": crontab(minute=5)}
    declared["c"] = {"task": "x.y", "schedule": 60}
    mine = task("a", interval=every(60), description="mine", args="[ 1]", enabled=False)
    task("b", clocked=instant(at(60)))
    PeriodicTask.objects.filter(name="a").update(task="x.y")
    done = report("settings", "--apply")
    assert done["code"] == 1 and {name: row["outcome"] for name, row in done["rows"].items()} == {
        "a": "same",
        "b": "kept",
        "c": "new",
    }
    assert "schedule" in done["rows"]["b"]["why"] and "task" in done["rows"]["b"]["why"]
    assert PeriodicTask.objects.get(name="b").clocked is not None
    assert "With --replace" in imported("settings")[1]
    Bench().tick()

    assert outcomes("settings", "--replace")["b"] == "replaced"
    assert PeriodicTask.objects.get(name="b").clocked is not None
    assert outcomes("settings", "--replace", "--apply") == {"a": "same", "b": "replaced", "c": "same"}
    other = PeriodicTask.objects.get(name="b")
    assert (other.clocked, other.crontab, other.task, other.one_off) == (None, cron("5"), "x.y", False)
    Bench().tick()
    assert due(other) == 300
    # Somebody deletes one while it is replaced: then it is made.
    PeriodicTask.objects.filter(name="b").update(task="z.z")
    plan = carry._planned

    def meanwhile(*args: Any) -> Any:
        plans = plan(*args)
        PeriodicTask.objects.filter(name="b", task="z.z").delete()
        return plans

    monkeypatch.setattr(carry, "_planned", meanwhile)
    assert outcomes("settings", "--replace", "--apply") == {"a": "same", "b": "new", "c": "same"}
    mine.refresh_from_db()
    assert (mine.description, mine.enabled) == ("mine", False)


def test_schedules_are_found_by_value(declared: dict[str, Any]) -> None:
    kept = every(60), cron("1-5")
    declared.update({str(n): {"task": "a.b", "schedule": 60} for n in range(5)})
    declared["c"] = {"task": "a.b", "schedule": crontab(minute=[1, 2, 3, 4, 5])}
    declared["d"] = {"task": "a.b", "schedule": crontab(minute="1-5")}
    assert report("settings", "--apply")["counts"] == {"new": 7}
    assert list(IntervalSchedule.objects.all()) == [kept[0]]
    assert kept[1] in CrontabSchedule.objects.all()
    assert PeriodicTask.objects.get(name="d").crontab == kept[1]


def test_one_row_that_the_database_refuses_stops_no_other(declared: dict[str, Any]) -> None:
    for name, queue in {"one": "q", "two": "q", "three": "r"}.items():
        declared[name] = {"task": "a.b", "schedule": 60, "options": {"queue": queue}}
    sql(f"CREATE UNIQUE INDEX of_their_own ON {TASK} (queue)")
    try:
        done = report("settings", "--apply")
    finally:
        sql(f"DROP INDEX of_their_own {f'ON {TASK}' if connection.vendor == 'mysql' else ''}")
    assert {name: row["outcome"] for name, row in done["rows"].items()} == {
        "one": "new",
        "two": "refused",
        "three": "new",
    }
    assert "the database refuses it" in done["rows"]["two"]["why"]
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"one", "three"}


def test_a_one_off_that_has_run_here_is_no_difference(declared: dict[str, Any]) -> None:
    declared["once"] = {"task": "a.b", "schedule": 60, "one_off": True, "enabled": True}
    report("settings", "--apply")
    PeriodicTask.objects.update(enabled=False, total_run_count=1, last_run_at=from_utc(at(1)))
    assert outcomes("settings", "--apply", "--replace") == {"once": "same"}
    declared["once"]["args"] = [2]
    assert outcomes("settings", "--apply", "--replace") == {"once": "replaced"}
    assert not PeriodicTask.objects.get().enabled
    declared["once"]["schedule"] = 90
    assert outcomes("settings", "--apply", "--replace") == {"once": "replaced"}
    assert PeriodicTask.objects.get().enabled


def test_entries_that_modules_add_to_the_app_are_among_them(declared: dict[str, Any]) -> None:
    from tests.project.celery import app

    app.add_periodic_task(10.0, app.signature("tests.add"), args=(1,), name="added", queue="q")
    assert outcomes("settings", "-A", "tests.project.celery:app") == {"added": "new"}
    assert imported("settings", "-A", "no.such:app")[0] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "SOURCE"),
        (("shelf",), "shelf"),
        (("settings", "--apply", "--dry-run"), "--dry-run"),
        (("settings", "--database", "nowhere"), "nowhere"),
        (("database",), "--from"),
        (("database", "--from", "nowhere"), "nowhere"),
        (("database", "--from", "default"), "`migrate` takes it over in place"),
        (("redbeat",), "--url is needed"),
        (("redbeat", "--url", "redis://127.0.0.1:1/0"), "127.0.0.1:1"),
        (("redbeat", "--url", "nonsense"), "nonsense"),
    ],
)
def test_what_cannot_be_used_is_said(words: tuple[str, ...], said: str) -> None:
    code, text = imported(*words)
    assert said in text and (code == 2 or "argument" in text)
