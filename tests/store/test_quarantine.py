"""A row that is bad all the same is set aside with its reason; nothing else stops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.db.utils import DataError, OperationalError

from onebeat.core.recurrence import solar
from onebeat.models import PeriodicTask, SolarSchedule
from onebeat.queries import status
from tests.engine.kit import Bench, at, clocked, cron, due, every, ledger, options, reason, set_task, sql, sweep, task

P = "django_celery_beat_"
HUGE = 2**31 - 1


def _own(of: PeriodicTask, table: str, columns: str, *values: Any) -> None:
    """Give a task a schedule row of its own that no model would make."""
    kind = table.removesuffix("schedule")
    marks = ", ".join(["%s"] * len(values))
    names = ", ".join(map(connection.ops.quote_name, columns.split()))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {P}{table} ({names}) VALUES ({marks})", values)
        cursor.execute(f"SELECT MAX(id) FROM {P}{table}")
        (key,) = cursor.fetchone()
    set_task(of, **{"interval_id": None, f"{kind}_id": key})


CRON = "minute hour day_of_month month_of_year day_of_week timezone"


def _cron(*fields: str, timezone: str = "UTC") -> Callable[[PeriodicTask], None]:
    texts = [*fields, "*", "*", "*", "*", "*"][:5]
    return lambda of: _own(of, "crontabschedule", CRON, *texts, timezone)


def _interval(number: int, period: str) -> Callable[[PeriodicTask], None]:
    return lambda of: _own(of, "intervalschedule", "every period", number, period)


def _solar(event: str, latitude: Any, longitude: Any) -> Callable[[PeriodicTask], None]:
    return lambda of: _own(of, "solarschedule", "event latitude longitude", event, latitude, longitude)


def _set(**columns: Any) -> Callable[[PeriodicTask], None]:
    return lambda of: set_task(of, **columns)


def _two_schedules(of: PeriodicTask) -> None:
    set_task(of, crontab_id=cron("*").pk)


def _clocked_again_and_again(of: PeriodicTask) -> None:
    set_task(of, interval_id=None, clocked_id=clocked(at(60)).pk, one_off=False)


BAD: dict[str, tuple[Callable[[PeriodicTask], None], str]] = {
    "args not JSON": (_set(args="[1,"), "args"),
    "args an object": (_set(args='{"a": 1}'), "args"),
    "args [None]": (_set(args="[None]"), "args"),
    "args nested too deep": (_set(args="[" * 100_000), "args"),
    "kwargs a list": (_set(kwargs="[1, 2]"), "kwargs"),
    "kwargs a number": (_set(kwargs="1" * 5000), "kwargs"),
    "headers a list": (_set(headers="[1]"), "headers"),
    "headers a word": (_set(headers="null"), "headers"),
    "no schedule": (_set(interval_id=None), "schedule"),
    "two schedules": (_two_schedules, "schedule"),
    "clocked and not one-off": (_clocked_again_and_again, "one_off"),
    "cron: empty minute": (_cron(""), "minute"),
    "cron: 1,": (_cron("1,"), "minute"),
    "cron: words": (_cron("*", "soon"), "hour"),
    "cron: out of range": (_cron("61"), "minute"),
    "cron: 31 February": (_cron("0", "0", "31", "2"), "day_of_month"),
    "cron: huge": (_cron("9" * 200), "minute"),
    "cron: unknown zone": (_cron("*", timezone="Mars/Olympus"), "timezone"),
    "cron: empty zone": (_cron("*", timezone=""), "timezone"),
    "cron: a path as zone": (_cron("*", timezone="../../etc/passwd"), "timezone"),
    "interval: 0": (_interval(0, "seconds"), "every"),
    "interval: -5": (_interval(-5, "seconds"), "every"),
    "interval: unknown unit": (_interval(1, "fortnights"), "period"),
    "interval: no unit": (_interval(1, ""), "period"),
    "interval: too long": (_interval(HUGE, "days"), "every"),
    "solar: latitude 91": (_solar("sunrise", 91, 0), "latitude"),
    "solar: longitude 181": (_solar("sunrise", 0, 181), "longitude"),
    "solar: unknown event": (_solar("moonrise", 0, 0), "event"),
}

#: What only some databases take at all.
LOOSE: dict[str, Callable[[PeriodicTask], None]] = {
    "expires that no datetime holds": _set(expires="infinity"),
    "start that no datetime holds": _set(start_time="-infinity"),
    "last run in another calendar": _set(last_run_at="12000-01-01 00:00:00"),
    "latitude that is no number": _solar("sunrise", "NaN", 0),
    "a word as date": _set(expires="tomorrow"),
    "a word as flag": _set(enabled="maybe"),
    "a word as number": _set(expire_seconds="many"),
    "a number too large": _set(expire_seconds=2**62),
    "a count that is none": _set(total_run_count="several"),
    "a word as interval": lambda of: _own(of, "intervalschedule", "every period", "few", "seconds"),
    "a word as coordinate": _solar("sunrise", "north", 0),
}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "quarantined" in one.getMessage()]


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_is_set_aside_and_the_others_run(bench: Bench, caplog: pytest.LogCaptureFixture, what: str) -> None:
    spoil, field = BAD[what]
    bad, good = task("bad", enabled=False), task("good")
    bench.tick()
    spoil(bad)
    set_task(bad, enabled=True)
    sweep()
    bench.work(2)
    sweep()
    assert field in reason(bad), reason(bad)
    assert len(lines(caplog)) == 1
    assert "'bad'" in lines(caplog)[0]
    bench.advance(58)
    assert bench.sent == [("good", 60)]
    assert status.status("default")["quarantined"] == [{"id": bad.pk, "name": "bad", "reason": reason(bad)}]
    # Repaired: it runs again, at its next time.
    set_task(
        bad,
        args="[]",
        kwargs="{}",
        headers="{}",
        one_off=False,
        interval_id=good.interval_id,
        crontab_id=None,
        clocked_id=None,
        solar_id=None,
    )
    sweep()
    assert (reason(bad), due(bad)) == ("", 120)
    bench.advance(60)
    assert sorted(bench.sent) == [("bad", 120), ("good", 60), ("good", 120)]


def test_rows_that_were_spoilt_a_moment_before_their_turn_are_set_aside_by_the_claim(bench: Bench) -> None:
    """All kinds at once, among good ones."""
    made = {what: task(what) for what in BAD}
    good = [task(f"good {number}") for number in range(3)]
    bench.advance(59)
    for what, (spoil, _) in BAD.items():
        spoil(made[what])
    bench.advance(2)
    assert sorted(bench.sent) == [(one.name, 60) for one in good]
    for what, (_, field) in BAD.items():
        assert field in reason(made[what]), what
        assert ledger(made[what]) == [(60, "skipped", "quarantined")], what


@pytest.mark.parametrize("what", LOOSE)
def test_a_row_that_cannot_even_be_read_stops_nothing_else(bench: Bench, what: str) -> None:
    bad, good = task("bad"), task("good")
    bench.tick()
    try:
        LOOSE[what](bad)
    except (DataError, OperationalError, IntegrityError) as error:
        pytest.skip(f"this database refuses it: {error}")
    sweep()
    bench.work(3)
    bench.advance(58)
    sweep()
    bench.work(3)
    assert ("good", 60) in bench.sent
    assert status.status("default")["due"] == 0
    if reason(bad):
        set_task(bad, expires=None, start_time=None, last_run_at=None, enabled=True, expire_seconds=None)
        set_task(bad, total_run_count=0, interval_id=good.interval_id, solar_id=None)
        sweep()
        assert reason(bad) == ""
        bench.advance(60)
        assert ("bad", 120) in bench.sent


def test_a_bad_new_row_is_logged_once_however_often_it_is_met(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bad = task("bad", enabled=False)
    set_task(bad, args="nothing", enabled=True)
    for _ in range(3):
        sweep()
        bench.advance(61)
    assert len(lines(caplog)) == 1
    assert ledger(bad) == []


def test_a_disabled_bad_row_is_left_alone(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bad = task("bad", enabled=False)
    set_task(bad, args="nothing")
    sweep()
    bench.advance(61)
    assert (lines(caplog), reason(bad)) == ([], "")


def test_a_solar_row_without_the_library_names_the_remedy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ephem")
    sun, _ = SolarSchedule.objects.get_or_create(event="sunset", latitude=60, longitude=5)
    bad = task("bad", solar=sun)
    task("good")
    monkeypatch.setitem(sys.modules, "ephem", None)
    solar._ephem.cache_clear()
    bench.advance(60)
    assert bench.sent == [("good", 60)]
    assert "pip install" in reason(bad)
    monkeypatch.undo()
    sweep()
    assert reason(bad) == ""
    assert due(bad) is not None


def test_a_value_in_a_shared_row_that_is_no_number(bench: Bench) -> None:
    pytest.importorskip("ephem")
    sun, _ = SolarSchedule.objects.get_or_create(event="sunset", latitude=60, longitude=5)
    bad, _ = task("bad", solar=sun), task("good")
    bench.tick()
    try:
        sql(f"UPDATE {P}solarschedule SET latitude = %s", "NaN")
    except (DataError, OperationalError) as error:
        pytest.skip(f"this database refuses it: {error}")
    sweep()
    bench.advance(60)
    assert bench.sent == [("good", 60)]
    assert reason(bad)


def test_numbers_at_the_edge_of_their_columns(bench: Bench) -> None:
    one = task("long", interval=every(HUGE, "minutes"))
    count = task("count", interval=every(10))
    options(task("policy", interval=every(10)), grace_seconds=HUGE, jitter_seconds=HUGE)
    set_task(count, total_run_count=HUGE, expire_seconds=HUGE, priority=HUGE)
    bench.tick()
    assert due(one) == HUGE * 60
    bench.work(31)
    bench.engine.run_counts.write()
    count.refresh_from_db()
    assert count.total_run_count == HUGE
    assert [name for name, _ in bench.sent].count("count") == 3
    assert [name for name, _ in bench.sent].count("policy") >= 2


def test_an_orphan_of_a_schedule_that_is_gone(bench: Bench) -> None:
    """Where the database lets a schedule go while a task points at it."""
    bad, _ = task("bad", crontab=cron("7")), task("good")
    bench.tick()
    off, on = {
        "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
        "mysql": ("SET foreign_key_checks = 0", "SET foreign_key_checks = 1"),
    }.get(connection.vendor, ("", ""))
    if not off:
        pytest.skip("this database holds foreign keys whatever is asked")
    sql(off)
    sql(f"DELETE FROM {P}crontabschedule WHERE id = %s", bad.crontab_id)
    sweep()
    bench.advance(60)
    assert bench.sent == [("good", 60)]
    assert "crontab" in reason(bad)
    bad.delete()
    sql(on)
