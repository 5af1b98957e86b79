"""The way back: `onebeat handback`, then the real django-celery-beat 2.9 on the same tables, and forward again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from onebeat.core import clock
from onebeat.models import Beat, IntervalSchedule, Occurrence, PeriodicTask, TaskState
from onebeat.models.instants import from_utc, to_their_run
from onebeat.takeover.leave import unconstrain
from tests import services
from tests.engine.kit import Bench, at, clocked, cron, due, every, ledger, options, set_task, sweep, task
from tests.processes import run_python
from tests.scratch import Scratch, Templates
from tests.takeover import real

#: A project without USE_TZ, west of Greenwich: its wall clock, taken for UTC, is hours ago.
WALL_CLOCK = {"ONEBEAT_TEST_USE_TZ": "0", "ONEBEAT_TEST_TZ_AWARE": "0", "ONEBEAT_TEST_TIME_ZONE": "America/New_York"}
CASES = [(kind, {}) for kind in services.DATABASES] + [("sqlite", WALL_CLOCK)]


@pytest.fixture(params=CASES, ids=[f"{kind}{'-wall-clock' if env else ''}" for kind, env in CASES])
def place(request: pytest.FixtureRequest, templates: Templates) -> Iterator[tuple[Scratch, dict[str, str]]]:
    """A migrated database, and the settings to use it with."""
    name, env = request.param
    for kind in services.databases():
        if kind.name == name:
            with Scratch.open(kind, templates.of(kind)) as scratch:
                yield scratch, env
            return
    pytest.skip(services.missing().get(name, name))


def ask(*args: str) -> tuple[int, str]:
    """(exit code, what it said) of a command."""
    out = io.StringIO()
    try:
        call_command(*args, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue() + str(error)
    return 0, out.getvalue()


def work_and_hand_back() -> dict[str, Any]:
    """onebeat's half: tasks of every kind, a scheduler that is killed, and `handback`."""
    now = datetime.now(UTC)
    hour = {"interval": every(1, "hours")}

    def ran(minutes: float) -> dict[str, Any]:
        return {"last_run_at": to_their_run(now - timedelta(minutes=minutes))}

    task("hour", **hour, **ran(61), total_run_count=10)
    task("cron", crontab=cron(str((now - timedelta(minutes=2)).minute), timezone=settings.TIME_ZONE), **ran(90))
    task("clock", clocked=clocked(now - timedelta(minutes=5)))
    rearmed = task("rearmed", clocked=clocked(now + timedelta(hours=1)))
    options(task("decided", clocked=clocked(now - timedelta(minutes=7))), missed="skip")
    options(task("made up for", **hour, **ran(3 * 24 * 60)), missed="skip")
    options(
        task("never there", crontab=cron("0", "0", day_of_month="1", timezone=settings.TIME_ZONE), **ran(90 * 24 * 60)),
        missed="skip",
    )
    task("not yet", **hour)

    task("begun", **hour, start_time=from_utc(now - timedelta(minutes=10)))
    options(task("paused", **hour, **ran(61)), paused=True)
    task("last friday", crontab=cron("0", "0", day_of_week="fri#L"), **ran(1))
    set_task(task("broken", **hour), args="{")
    options(task("spread", **hour, **ran(1)), jitter_seconds=5)
    bench = Bench(run_state_seconds=3600)
    sweep()
    while bench.tick() == 0:
        pass
    sent = sorted(name for name, _ in bench.sent)
    set_task(rearmed, total_run_count=1)
    task("left", clocked=clocked(now - timedelta(minutes=3)))
    bench.die_at("claimed")
    before = tables()
    refused = ask("onebeat", "handback", "--disable")
    assert tables() == before
    Beat.objects.update(seen_at=now - timedelta(minutes=1))
    check = ask("onebeat", "handback", "--check", "--json")
    assert tables() == before
    done = ask("onebeat", "handback", "--disable", "--drop-constraints")
    after = tables()
    again = ask("onebeat", "handback", "--disable", "--drop-constraints", "--json")
    assert tables() == after
    assert not TaskState.objects.exists() and unconstrain.present("default") == []
    return {"sent": sent, "refused": refused, "check": check, "done": done, "again": again}


def tables() -> list[Any]:
    """What `handback` writes to."""
    names = ("name", "enabled", "last_run_at", "total_run_count")
    rows = [[str(value) for value in row] for row in PeriodicTask.objects.order_by("pk").values_list(*names)]
    return [rows, TaskState.objects.count(), list(Occurrence.objects.order_by("pk").values_list("state", "reason"))]


def forward() -> dict[str, Any]:
    """onebeat again, after its rival; then everything of it away and back."""
    code, text = ask("migrate", "--verbosity=0")
    assert code == 0, text
    kinds = unconstrain.present("default")
    twins = IntervalSchedule.objects.filter(every=1, period="hours").count()
    bench = Bench()
    sweep()
    sweep()
    while bench.tick() == 0:
        pass
    bench.engine.close()
    sent = sorted(name for name, _ in bench.sent)
    ask("migrate", "--verbosity=0", "django_celery_beat", "0019")
    left = [name for name in connection.introspection.table_names() if name.startswith("onebeat")]
    ask("migrate", "--verbosity=0")
    return {"kinds": kinds, "twins": twins, "sent": sent, "left": left, "anew": unconstrain.present("default")}


WRONG = ["broken", "last friday", "paused"]


def test_there_and_back(place: tuple[Scratch, dict[str, str]]) -> None:
    scratch, env = place
    ours = run_python({**scratch.env, **env}, work_and_hand_back)
    assert ours["sent"] == ["clock", "cron", "hour"]
    code, text = ours["refused"]
    assert code == 1 and "Stop these schedulers first" in text
    code, text = ours["check"]
    found = json.loads(text.splitlines()[0].removesuffix("Something to look at."))
    wrong = sorted([*WRONG, "left", "rearmed"] if env else WRONG)  # its clocks are others without USE_TZ
    assert code == 1 and sorted(one["name"] for one in found["wrong"]) == wrong
    assert sorted(one["name"] for one in found["notes"]) == ["begun", "made up for", "never there", "spread"]
    assert (found["unsent"], found["finished"]) == (1, 2)
    code, text = ours["done"]
    assert code == 0 and "DISABLED: last friday" in text and "claimed by a scheduler that is lost" in text
    code, text = ours["again"]
    assert code == 0 and sorted(one["name"] for one in json.loads(text)["record"]) == wrong

    theirs = real.real(scratch, real.everything, **env)
    answers, rows = theirs["answers"], theirs["rows"]
    asked_for = sorted(name for name, (is_due, _) in answers.items() if is_due)
    left = [] if env else ["left"]  # a lost scheduler had it, and nobody knows that it was sent
    assert asked_for == left
    assert not {*wrong, "clock", "decided"} & answers.keys()
    if not env:
        assert 3000 < answers["rearmed"][1] <= 3600 and 2000 < answers["begun"][1] <= 3000
    assert rows["hour"][:2] == [True, 11] and rows["clock"][:2] == [False, 1]
    assert 0 <= rows["hour"][2] < 600 and rows["rearmed"][1] == 0
    assert (theirs["sent"], theirs["sent again"]) == (left, [])

    again = run_python({**scratch.env, **env}, forward)
    assert again["sent"] == ["new"]
    assert (again["kinds"], again["twins"]) == (["interval", "crontab", "clocked"], 1)
    assert (again["left"], again["anew"]) == ([], ["interval", "crontab", "clocked"])


@pytest.mark.django_db(transaction=True)
def test_whoever_stays_after_all_loses_nothing(bench: Bench) -> None:
    one, hour = task("one", clocked=clocked(at(2))), task("hour", interval=every(1, "hours"))
    bench.tick()
    grid = due(hour)
    clock.move(at(3))
    bench.die_at("claimed")
    Beat.objects.update(seen_at=at(-60))
    assert ask("onebeat", "handback")[0] == 0
    assert ledger(one) == [(2, "skipped", "handed_back")]
    again = Bench()
    sweep()
    again.tick()
    assert again.sent == [("one", 2)] and due(hour) == pytest.approx(grid, abs=4)
    again.engine.close()


#: Rows by raw SQL, and what becomes of each under its beat, in words of the report.
ODD: dict[str, tuple[dict[str, Any], str]] = {
    "no schedule": ({"interval_id": None}, "stops"),
    "two schedules": ({"crontab": ["*"], "last_run_at": "2020-01-01"}, "sooner or later"),
    "unit": ({"interval": [1, "Hours"]}, "stops"),
    "no pause": ({"interval": [0, "hours"]}, "without a pause"),
    "args": ({"args": "{"}, "disables"),
    "unreadable": ({"date_changed": "2020-13-45 00:00:00"}, "stops"),
    "headers": ({"headers": "{"}, "left out"),
    "headers list": ({"headers": "[1]"}, "stops"),
    "not one-off": ({"interval_id": None, "clocked": "2020-01-01"}, "sooner or later"),
    "L": ({"interval_id": None, "crontab": ["*", "L"]}, "left out"),
    "7": ({"interval_id": None, "crontab": ["*", "*", "7"]}, "left out"),
    "empty part": ({"interval_id": None, "crontab": ["1,,2"]}, "stops"),
    "fri#L": ({"interval_id": None, "crontab": ["*", "*", "fri#L"]}, "is read as '5'"),
    "names": ({"interval_id": None, "crontab": ["*", "*", "mon-fri"]}, ""),
    "plain": ({}, ""),
}


def odd_rows() -> list[Any]:
    """The rows above, and what `handback --check` says of each."""
    hour, tables = every(1, "hours"), "django_celery_beat_"

    def insert(table: str, **columns: Any) -> int:
        with connection.cursor() as cursor:
            names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
            cursor.execute(f"INSERT INTO {tables}{table}schedule ({names}) VALUES ({marks})", list(columns.values()))
            cursor.execute(f"SELECT MAX(id) FROM {tables}{table}schedule")
            return int(cursor.fetchone()[0])

    fields = ("minute", "day_of_month", "day_of_week")
    for name, (columns, _) in ODD.items():
        columns = dict(columns)
        one = task(name, interval=hour)
        if "crontab" in columns:
            texts = dict(zip(fields, columns.pop("crontab"), strict=False))
            every_day = {"hour": "4", "month_of_year": "*", "timezone": "UTC", **dict.fromkeys(fields, "*")}
            columns["crontab_id"] = insert("crontab", **{**every_day, **texts})
        if "interval" in columns:
            amount, unit = columns.pop("interval")
            columns["interval_id"] = insert("interval", every=amount, period=unit)
        if "clocked" in columns:
            columns["clocked_id"] = insert("clocked", clocked_time=columns.pop("clocked"))
        if columns:
            set_task(one, **columns)
    code, text = ask("onebeat", "handback", "--check", "--json")
    found = json.loads(text.splitlines()[0].removesuffix("Something to look at."))
    return [code, {one["name"]: one["why"] for one in found["wrong"]}]


def test_rows_that_it_cannot_run_are_known_by_what_becomes_of_them(templates: Templates) -> None:
    kind = next(kind for kind in services.databases() if kind.name == "sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        code, told = run_python(scratch.env, odd_rows)
        assert code == 1 and {name: ODD[name][1] in told.get(name, "") for name in ODD} == dict.fromkeys(ODD, True)
        assert {name for name in ODD if name not in told} == {name for name, (_, words) in ODD.items() if not words}
        seen = real.real(scratch, real.each_alone)
    becomes = {
        "sooner or later": ["sends", "stops"], "stops": ["stops"], "without a pause": ["sends", "sends", "sends"],
        "disables": ["disabled"], "left out": ["left out"], "is read as '5'": ["fine"], "": ["fine"],
    }  # fmt: skip
    assert seen == {name: becomes[words] for name, (_, words) in ODD.items()}
