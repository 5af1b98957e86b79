"""Times that could not be kept: missed runs, grace, jitter, pauses, and the end of a task."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from onebeat.core import clock
from onebeat.models import Occurrence
from onebeat.models.instants import from_utc
from tests.engine.kit import SETTINGS, Bench, at, clocked, cron, due, every, ledger, options, seconds, task


def down(bench: Bench, duration: float) -> None:
    """No scheduler is at work for so long."""
    bench.advance(duration + 0.5)


def broker_away(bench: Bench, duration: int) -> None:
    """Schedulers are at work, and their broker does not answer."""
    bench.outbox.unavailable = True
    for _ in range(duration):
        bench.advance(1)
    bench.outbox.unavailable = False
    bench.advance(0.5)


OUTAGES = pytest.mark.parametrize("outage", [down, broker_away], ids=["down", "broker away"])


@OUTAGES
def test_latest_sends_one_late_run_for_the_newest_missed_time(bench: Bench, outage) -> None:  # type: ignore[no-untyped-def]
    one = task(interval=every(1))
    bench.work(2)
    outage(bench, 20)
    assert bench.take() == [("t", 1), ("t", 2), ("t", 22)]
    bench.advance(0.5)
    assert bench.take() == [("t", 23)]
    (skipped,) = Occurrence.objects.filter(task_id=one.pk, state="skipped")
    assert (seconds(skipped.due_at), seconds(skipped.last_due_at)) == (3, 21)
    assert skipped.reason == "coalesced"
    assert skipped.detail == f"into {at(22).isoformat()}"


@OUTAGES
def test_skip_sends_nothing_for_missed_times(bench: Bench, outage) -> None:  # type: ignore[no-untyped-def]
    one = task(interval=every(10))
    options(one, missed="skip")
    bench.work(1)
    outage(bench, 36)
    assert bench.take() == []
    assert ledger(one) == [(10, "skipped", "missed")]
    bench.work(4)
    assert bench.take() == [("t", 40)]


@OUTAGES
def test_all_sends_every_missed_time_in_order(bench: Bench, outage) -> None:  # type: ignore[no-untyped-def]
    one = task(interval=every(10))
    options(one, missed="all")
    bench.work(1)
    outage(bench, 36)
    assert bench.sent == [("t", 10), ("t", 20), ("t", 30)]
    assert {state for _, state, _ in ledger(one)} == {"sent"}


def test_all_leaves_room_for_others(bench: Bench) -> None:
    """A long backlog goes out in portions."""
    one = task(interval=every(1))
    options(one, missed="all")
    bench.tick()
    down(bench, 250)
    assert len(bench.sent) == 100
    task("other", clocked=clocked(at(0)))
    bench.tick()
    assert bench.sent[100:] == [("other", 0)], "a hundred missed times in a second, and no more"
    for _ in range(3):
        bench.advance(1)
    assert [due_at for _, due_at in bench.sent if due_at] == list(range(1, 254)), "each of them, and in order"
    assert len(ledger(one)) == 253


def test_what_is_due_now_waits_for_one_message_of_each_task_that_is_behind(bench: Bench) -> None:
    bench.engine.parts.settings = replace(SETTINGS, batch_size=20)
    for number in range(20):
        options(task(f"behind {number}", interval=every(1)), missed="all")
    task("now", crontab=cron("*"))
    bench.tick()
    down(bench, 59)
    bench.advance(0.5)
    names = [name for name, _ in bench.sent]
    assert names.index("now") <= 40, "two looks, twenty tasks in each"
    assert bench.sent[names.index("now")] == ("now", 60)


@OUTAGES
@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_a_one_off_has_one_time_to_miss(bench: Bench, outage, missed: str) -> None:  # type: ignore[no-untyped-def]
    options(task("clocked", clocked=clocked(at(5))), missed=missed)
    options(task("cron", one_off=True, crontab=cron("1,2,3", "10")), missed=missed)
    bench.work(1)
    outage(bench, 150)
    bench.work(1)
    expected = {
        "latest": [("clocked", 5), ("cron", 120)],
        "skip": [],
        "all": [("clocked", 5), ("cron", 60)],
    }
    assert sorted(bench.take()) == expected[missed]
    bench.engine.run_counts.write()
    bench.advance(27.5)
    assert bench.take() == ([("cron", 180)] if missed == "skip" else [])


def test_busy_schedulers_are_late_and_miss_nothing(bench: Bench) -> None:
    one = task(interval=every(1))
    options(one, missed="skip")
    bench.advance(0.5)
    bench.advance(7)
    assert bench.sent == [("t", n) for n in range(1, 8)]


def test_grace_is_the_lateness_that_still_counts(bench: Bench) -> None:
    for name, grace in (("short", 60), ("long", 600)):
        options(task(name, crontab=cron("5", "10")), grace_seconds=grace)
    down(bench, 300 + 61)
    assert bench.sent == [("long", 300)]


def test_grace_counts_even_for_what_is_only_late(bench: Bench) -> None:
    one = task(interval=every(1))
    options(one, grace_seconds=2)
    bench.advance(0.5)
    bench.advance(6)
    assert bench.sent == [("t", 5), ("t", 6)]
    assert ledger(one)[0] == (1, "skipped", "missed")


@pytest.mark.timeout(100)  # looked at one by one they take many minutes
def test_a_million_missed_times_are_one_row_and_quick(bench: Bench) -> None:
    made = [
        task("interval", interval=every(1)),
        task("cron", crontab=cron("*")),
        task("skip", interval=every(1)),
        task("paused", interval=every(1)),
    ]
    options(made[2], missed="skip")
    options(made[3], paused=True)
    bench.tick()
    down(bench, 60_000_000)
    assert sorted(bench.sent) == [("cron", 60_000_000), ("interval", 60_000_000)]
    rows = Occurrence.objects.filter(state="skipped").order_by("task_id")
    found = [(row.task_name, seconds(row.due_at), seconds(row.last_due_at), row.reason) for row in rows]
    assert found == [
        ("interval", 1, 59_999_999, "coalesced"),
        ("cron", 60, 59_999_940, "coalesced"),
        ("skip", 1, 60_000_000, "missed"),
        ("paused", 1, 60_000_000, "paused"),
    ]


def test_jitter_moves_the_sending_and_not_the_time(bench: Bench) -> None:
    made = [task(f"t{number}", interval=every(60)) for number in range(8)]
    for one in made:
        options(one, jitter_seconds=10)
    bench.work(59)
    assert bench.take() == []
    moments = {}
    for second in range(60, 71):
        bench.advance(1)
        moments.update(dict.fromkeys((name for name, _ in bench.take()), second))
    assert len(moments) == 8
    assert len(set(moments.values())) > 2
    assert {nominal for _, nominal in bench.sent} == {60}
    assert {due(one) for one in made} == {120}


def test_a_paused_task_is_recorded_and_not_sent(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, paused=True)
    bench.work(25)
    assert bench.sent == []
    assert ledger(one) == [(10, "skipped", "paused"), (20, "skipped", "paused")]
    options(one, paused=False)
    bench.work(6)
    assert bench.sent == [("t", 30)]


def test_a_pause_may_have_an_end(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, paused=True, paused_until=at(30))
    bench.work(29)
    assert bench.sent == []
    bench.work(12)
    assert bench.sent == [("t", 30), ("t", 40)]


def test_an_outage_across_the_end_of_a_pause_sends_what_came_after_it(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, missed="all", paused=True, paused_until=at(25))
    bench.tick()
    down(bench, 45)
    assert bench.sent == [("t", 30), ("t", 40)]
    assert ledger(one)[0] == (10, "skipped", "paused")


@OUTAGES
@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_a_missed_time_is_not_made_up_for_after_the_end_of_the_task(  # type: ignore[no-untyped-def]
    bench: Bench, outage, missed: str
) -> None:
    one = task(interval=every(10), expires=from_utc(at(25)))
    options(one, missed=missed)
    bench.work(1)
    outage(bench, 40)
    bench.work(10)
    assert bench.sent == []
    (row,) = Occurrence.objects.all()
    assert (seconds(row.due_at), seconds(row.last_due_at), row.state, row.reason) == (10, 20, "skipped", "expired")


def test_the_last_time_at_the_end_itself_is_sent_and_its_message_is_alive(bench: Bench) -> None:
    task(interval=every(10), expires=from_utc(at(20)))
    bench.work(9)
    bench.advance(1)
    assert bench.outbox.messages[0].options["expires"] == at(20)
    bench.work(9)
    bench.advance(1.2)
    assert bench.sent == [("t", 10), ("t", 20)]
    assert "expires" not in bench.outbox.messages[1].options


def test_an_outage_over_the_spring_change_makes_the_gap_run_up_once(bench: Bench) -> None:
    with clock.pin(datetime(2026, 3, 7, 20, tzinfo=UTC)):
        bench.tick()
        task(crontab=cron("30", "2", timezone="America/New_York"))
        bench.tick()
        clock.move(datetime(2026, 3, 8, 12, tzinfo=UTC))
        bench.tick()
        ((_, nominal),) = bench.sent
        assert at(nominal or 0) == datetime(2026, 3, 8, 7, tzinfo=UTC)


def test_what_a_deleted_task_was_behind_with_is_recorded_as_a_range(bench: Bench) -> None:
    """Down for a while, and deleted meanwhile: each of its times has its reason."""
    one = task(interval=every(10))
    bench.work(11)
    clock.move(at(45))
    key = one.pk
    one.delete()
    bench.tick()
    (row,) = Occurrence.objects.filter(task_id=key, state="skipped")
    assert (seconds(row.due_at), seconds(row.last_due_at), row.reason) == (20, 45, "cancelled")
    assert row.task_name == "t"
