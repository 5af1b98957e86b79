"""What is coming: what the engine then does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import onebeat
from onebeat.core import clock
from onebeat.queries.upcoming import OVERDUE
from tests.engine.kit import Bench, at, clocked, cron, every, options, seconds, set_task, task


def times(found: list[onebeat.Upcoming]) -> list[tuple[str, float | None, str]]:
    return [(one.task, seconds(one.due_at), one.skipped) for one in found]


def test_it_is_what_is_sent(bench: Bench) -> None:
    task("a", interval=every(10))
    task("b", interval=every(15))
    task("once", clocked=clocked(at(12)))
    off = task("off", interval=every(1))
    set_task(off, enabled=False)
    for planned in (False, True):  # before a scheduler has seen them one by one, then all
        assert times(onebeat.upcoming("a", 2)) == [("a", 10, ""), ("a", 20, "")]
        assert times(onebeat.upcoming("once", 5)) == [("once", 12, "")]
        if not planned:
            bench.tick()
    assert onebeat.upcoming("off") == []
    ahead = onebeat.upcoming(count=6)
    assert all(one.sends and one.leaves_at == one.due_at for one in ahead)
    bench.work(30)
    assert sorted(bench.sent, key=str) == sorted(((one.task, seconds(one.due_at)) for one in ahead), key=str)
    assert len(onebeat.upcoming(until=timedelta(seconds=20))) == 3


def test_pauses_skips_ends_and_jitter(bench: Bench) -> None:
    one = task(interval=every(10), expires=at(60))
    options(one, tags="x", jitter_seconds=5)
    bench.tick()
    onebeat.pause("t", until=at(25))
    onebeat.skip("t", at(40))
    found = onebeat.upcoming(onebeat.Tag("x"), 20)
    assert times(found) == [
        ("t", 10, "paused"),
        ("t", 20, "paused"),
        ("t", 30, ""),
        ("t", 40, "cancelled"),
        ("t", 50, ""),
        ("t", 60, ""),
    ]
    left: dict[datetime, datetime] = {}
    for _ in range(70):
        bench.advance(1)
        left.update({at(due): clock.host_now() for _, due in bench.take() if due is not None})
    assert list(left) == [ahead.due_at for ahead in found if ahead.sends]
    for ahead in found:
        if ahead.sends:
            assert timedelta(0) <= left[ahead.due_at] - ahead.leaves_at < timedelta(seconds=1)


def test_notes(bench: Bench) -> None:
    task(crontab=cron("30", "2", timezone="Europe/Berlin"))
    bench.tick()
    clock.move(datetime(2026, 3, 28, 12, tzinfo=UTC))
    overdue, gap, ordinary = [one for one in onebeat.upcoming("t", 20) if one.due_at > at(17 * 86400)][:3]
    assert (overdue.note, ordinary.note) == (OVERDUE, "")
    assert (gap.due_at, gap.note) == (
        datetime(2026, 3, 29, 1, tzinfo=UTC),
        "02:30 does not exist that day: runs at 03:00",
    )


def test_a_look_at_all_reads_no_more_than_it_shows(bench: Bench) -> None:
    for number in range(30):
        task(f"t{number}", interval=every(100 + number))
    bench.tick()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert len(onebeat.upcoming(count=5)) == 5
    assert len(queries) < 10
    with pytest.raises(ValueError, match="count: a whole number from 1 up is needed, not 0"):
        onebeat.upcoming(count=0)
