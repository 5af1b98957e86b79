"""A verdict for every time: one sentence, and facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from onebeat.core import clock
from onebeat.dispatch.base import Refused
from onebeat.errors import UnknownTask
from onebeat.models import Occurrence, Outage, TaskState
from onebeat.models.instants import from_utc
from onebeat.queries.explain import explain
from onebeat.store import global_pause
from tests.engine.kit import START, Bench, at, clocked, cron, every, finish, options, set_task, task, why


def command(*args: str) -> str:
    out = StringIO()
    call_command("onebeat", *args, stdout=out)
    return out.getvalue().strip()


def test_sent_and_what_became_of_it(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(9)
    bench.advance(1.25)
    assert why(one, 10).sentence == "'t' at 2026-03-10 10:00:10 UTC was sent on time, 250 ms after it."
    finish(one, 10, "started")
    assert "a worker has started it" in why(one, 10).sentence
    Occurrence.objects.update(state="failed")
    assert why(one, 10).sentence.endswith("and failed.")
    assert why(one, 10).facts["late_seconds"] == 0.25
    bench.advance(12)
    assert why(one, 20).sentence.startswith("'t' at 2026-03-10 10:00:20 UTC was sent late, by 2.2 s")


def test_being_sent(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(1)
    clock.move(at(10))
    bench.die_at("claimed")
    found = why(one, 10)
    assert (found.kind, "is being sent by the scheduler" in found.sentence) == ("sending", True)
    clock.move(at(60))
    assert "another is to take it" in why(one, 10).sentence


def outage(bench: Bench, how: str, duration: float) -> None:
    """From 10 s on, so long."""
    if how == "down":
        bench.engine.close()
        clock.move(at(10 + duration))
        bench.engine = Bench(bench.outbox).engine
    elif how == "database":
        clock.move(at(10 + duration))
    else:
        bench.outbox.unavailable = True
        bench.work(int(duration))
        bench.outbox.unavailable = False
    bench.advance(0.5)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("down", "no scheduler was at work"),
        ("broker", "the broker was away"),
        ("database", "the schedulers were at work and could not reach the database"),
    ],
)
def test_missed_and_by_whose_absence(bench: Bench, how: str, words: str) -> None:
    latest, skip, every_one = task("latest", interval=every(10)), task("skip", interval=every(10)), task("all")
    options(skip, missed="skip")
    options(every_one, missed="all")
    bench.work(10)
    outage(bench, how, 125)
    (found,) = Outage.objects.all()
    assert (found.kind, found.began_at, found.ended_at) == (how, at(10), at(135.5))
    gap = f"{words} from 2026-03-10 10:00:10 UTC to 2026-03-10 10:02:15.500000 UTC"
    coalesced, missed, late = why(latest, 60), why(skip, 60), why(every_one, 60)
    assert (coalesced.kind, missed.kind, late.kind) == ("coalesced", "missed", "sent")
    assert coalesced.sentence == (
        "'latest' at 2026-03-10 10:01:00 UTC was missed and had no run of its own, "
        f"the one of 2026-03-10 10:02:10 UTC stands for it: {gap}."
    )
    assert missed.sentence == f"'skip' at 2026-03-10 10:01:00 UTC was missed and not made up for: {gap}."
    assert late.sentence == f"'all' at 2026-03-10 10:01:00 UTC was sent late, by 1 min 15 s ({gap})."
    assert missed.facts["outage"] == {"kind": how, "from": at(10).isoformat(), "to": at(135.5).isoformat()}


def test_a_scheduler_that_takes_over_at_once_leaves_no_outage(bench: Bench) -> None:
    other = Bench(bench.outbox)
    other.tick()
    bench.engine.close()
    other.work(3)
    third = Bench(bench.outbox)
    third.work(3)
    assert not Outage.objects.exists()


def test_two_that_come_back_together_record_one_outage(bench: Bench) -> None:
    other = Bench(bench.outbox)
    other.tick()
    clock.move(at(100))
    other.tick()
    bench.tick()
    assert [(one.began_at, one.ended_at) for one in Outage.objects.all()] == [(START, at(100))]


def paused(bench: Bench) -> str:
    options(task(interval=every(10)), paused=True, paused_by="ann", paused_why="stocktaking")
    bench.work(11)
    return "was skipped: paused by ann: stocktaking."


def all_paused(bench: Bench) -> str:
    task(interval=every(10))
    global_pause.pause_all("default", by="bob", why="the move", until=at(30))
    bench.work(11)
    return "was skipped: everything is paused by bob: the move."


def past_its_grace(bench: Bench) -> str:
    options(task(interval=every(10)), grace_seconds=2)
    bench.advance(0.5)
    bench.advance(6)
    bench.advance(7)
    return "was missed and not made up for: later than the grace of 2 s."


def quarantined(bench: Bench) -> str:
    one = task(interval=every(10))
    bench.work(1)
    set_task(one, args="{")
    bench.work(10)
    reason = TaskState.objects.get(pk=one.pk).quarantine
    return f"was skipped: the task was quarantined: {reason}."


def refused(bench: Bench) -> str:
    task(interval=every(10))
    bench.outbox.answer = lambda message: Refused("no such queue")
    bench.work(11)
    return "was skipped: it could not be sent as it is: no such queue."


def disabled(bench: Bench) -> str:
    one = task(interval=every(10))
    bench.work(2)
    one.enabled = False
    one.save()
    bench.work(20)
    return "has no run: the task is disabled (since 2026-03-10 10:00:02 UTC)."


def before_its_start(bench: Bench) -> str:
    task(crontab=cron("*"), start_time=from_utc(at(7200)))
    bench.work(1)
    return "is not on its schedule; the next is 2026-03-10 12:00:00 UTC."


def finished(bench: Bench) -> str:
    task(clocked=clocked(at(5)))
    bench.work(11)
    return "is not on its schedule; the one before is 2026-03-10 10:00:05 UTC, none follows."


def not_its_time(bench: Bench) -> str:
    task(interval=every(7))
    bench.work(15)
    return (
        "has no run at 2026-03-10 10:00:10 UTC: it is not on its schedule; "
        "the one before is 2026-03-10 10:00:07 UTC, the next is 2026-03-10 10:00:14 UTC."
    )


def younger(bench: Bench) -> str:
    bench.work(15)
    task(interval=every(10))
    bench.tick()
    return "the task exists, or is known here, since 2026-03-10 10:00:15 UTC."


def edited(bench: Bench) -> str:
    one = task(interval=every(60))
    bench.work(15)
    one.interval = every(10)
    one.save()
    bench.tick()
    return "nothing is recorded; the task has its present schedule since 2026-03-10 10:00:15 UTC."


def to_come(bench: Bench) -> str:
    task(interval=every(10))
    bench.work(5)
    return "'t' at 2026-03-10 10:00:10 UTC is to come."


def to_come_in_a_pause(bench: Bench) -> str:
    options(task(interval=every(10)), paused=True, paused_by="ann")
    bench.work(5)
    return "is to come, and is to be skipped: the task is paused by ann."


def undecided(bench: Bench) -> str:
    task(interval=every(10))
    bench.work(5)
    clock.move(at(30))
    return "is due and not decided yet: no scheduler has been able to send since 2026-03-10 10:00:04 UTC."


@pytest.mark.parametrize(
    "case",
    [
        *(paused, all_paused, past_its_grace, quarantined, refused, disabled, before_its_start, finished),
        *(not_its_time, younger, edited, to_come, to_come_in_a_pause, undecided),
    ],
)
def test_why_it_did_not_run_at_ten_seconds(bench: Bench, case: Callable[[Bench], str]) -> None:
    expected = case(bench)
    found = why("t", 10)
    assert found.sentence.endswith(expected), found.sentence
    json.dumps(found.facts)


def test_a_time_that_came_between_two_looks_is_found_by_its_second(bench: Bench) -> None:
    clock.move(at(0.25))
    task(interval=every(10))
    bench.tick()
    bench.advance(10)
    assert explain("default", "t", at(10)).facts["due_at"] == at(10.25).isoformat()
    assert explain("default", "t", at(10.1)).kind == "not scheduled"


def test_a_task_that_is_gone_and_one_that_never_was(bench: Bench) -> None:
    task(interval=every(10)).delete()
    one = task("gone", interval=every(10))
    bench.work(10)
    one.delete()
    assert why("gone", 10).kind == "sent"
    assert why("gone", 11).kind == "unknown"
    with pytest.raises(UnknownTask, match="'never'"):
        why("never", 10)
    with pytest.raises(ValueError, match="aware"):
        explain("default", "gone", datetime(2026, 3, 10))  # noqa: DTZ001


def test_the_commands(bench: Bench) -> None:
    task(interval=every(10))
    options(task("held", crontab=cron("*/5")), paused=True, paused_by="ann")
    bench.work(10)
    sentence = "'t' at 2026-03-10 10:00:10 UTC was sent on time, 0 ms after it."
    assert command("explain", "t", "--at", "2026-03-10T10:00:10Z") == sentence
    assert command("explain", "t", "--at", "2026-03-10 10:00:10") == sentence
    found = json.loads(command("explain", "t", "--at", "2026-03-10T11:00:10+01:00", "--json"))
    assert (found["kind"], found["sentence"], found["facts"]["run"]) == ("sent", sentence, 0)
    assert [line.split("+")[0] for line in command("next", "t", "--count", "2").splitlines()] == [
        "2026-03-10T10:00:20",
        "2026-03-10T10:00:30",
    ]
    coming = json.loads(command("next", "--count", "30", "--json"))["next"]
    assert [one["task"] for one in coming].index("held") == 28
    assert coming[28]["skipped"] == "paused"
    for args, code, part in [
        (("explain", "x", "--at", "2026-03-10T10:00:10Z"), 1, "there is no task 'x'"),
        (("explain", "t", "--at", "tomorrow"), 2, "--at: 'tomorrow' is no time"),
        (("next", "x"), 1, "there is no task 'x'"),
        (("next", "--count", "0"), 2, "--count"),
    ]:
        with pytest.raises(CommandError, match=part) as error:
            command(*args)
        assert error.value.returncode == code
