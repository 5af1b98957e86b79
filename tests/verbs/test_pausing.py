"""Pause, resume and skip: what is sent, what is recorded, and by whom."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

import onebeat
from onebeat.core import clock
from onebeat.db import bulk_rows
from onebeat.models import Action, Fact, Occurrence, TaskOptions
from onebeat.store import task_states
from onebeat.verbs import resuming
from tests.engine.kit import Bench, at, every, ledger, options, task


def actions() -> list[tuple[str, str, str, str, str]]:
    return list(Action.objects.order_by("pk").values_list("verb", "task_name", "by", "why", "detail"))


def test_a_pause_holds_until_resumed_and_says_who_and_why(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(10)
    assert onebeat.pause("t", "deploying", by=User(username="ann")) == 1
    bench.work(20)
    assert onebeat.resume("t", by="ben") == 1
    bench.work(10)
    assert bench.sent == [("t", 10), ("t", 40)]
    assert ledger(one) == [(10, "sent", ""), (20, "skipped", "paused"), (30, "skipped", "paused"), (40, "sent", "")]
    assert actions() == [("pause", "t", "ann", "deploying", ""), ("resume", "t", "ben", "", "catch_up none")]


def test_a_pause_by_the_options_row_begins_and_ends_too(bench: Bench) -> None:
    one = task()
    for paused, since in ((True, at(0)), (False, None)):
        options(one, paused=paused)
        assert TaskOptions.objects.get().paused_at == since


def test_a_pause_ends_by_itself(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(5)
    onebeat.pause("t", until=timedelta(seconds=20))
    bench.work(25)
    assert bench.sent == [("t", 30)]
    assert onebeat.resume("t") == 1
    assert onebeat.resume("t") == 0


def test_what_is_paused_while_no_scheduler_runs_is_not_made_up_for(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(10)
    onebeat.pause("t")
    clock.move(at(35))
    onebeat.resume("t")
    bench.work(10)
    assert bench.sent == [("t", 10), ("t", 40)]
    assert [(row.due_at, row.last_due_at, row.reason) for row in Occurrence.objects.filter(state="skipped")] == [
        (at(20), at(30), "paused")
    ]


@pytest.mark.parametrize(
    ("catch_up", "made_up"), [("none", []), ("latest", [("t", 40)]), ("all", [("t", 20), ("t", 30), ("t", 40)])]
)
def test_catching_up(bench: Bench, catch_up: Any, made_up: list[Any]) -> None:
    one = task(interval=every(10))
    bench.work(10)
    onebeat.pause("t")
    bench.work(9)
    bench.advance(12)  # 20 and 30 in one range
    bench.work(10)  # 40 by itself
    onebeat.resume("t", catch_up=catch_up)
    bench.take()
    bench.tick()
    assert bench.take() == made_up
    bench.work(9)
    assert bench.take() == [("t", 50)]
    assert [state for _, state, _ in ledger(one) if state == "skipped"] == ["skipped"] * 2


def test_too_much_to_catch_up_is_refused_and_stays_paused(bench: Bench) -> None:
    task(interval=every(1))
    bench.tick()
    onebeat.pause("t")
    bench.advance(2000)
    with pytest.raises(ValueError, match="catch_up: the pause of 't' has skipped more than 1000"):
        onebeat.resume("t", catch_up="all")
    assert TaskOptions.objects.get().paused
    assert onebeat.resume("t", catch_up="latest") == 1


def test_many_at_once(bench: Bench) -> None:
    made = {name: task(name, interval=every(10)) for name in ("a", "b", "c")}
    options(made["a"], tags="mail, night")
    options(made["b"], tags="email")
    assert onebeat.pause(onebeat.Tag("mail")) == 1
    bench.work(10)
    assert sorted(bench.take()) == [("b", 10), ("c", 10)]
    assert onebeat.pause(onebeat.ALL, "audit", by="ann") == 3
    task("late", interval=every(10))
    bench.work(11)
    clock.move(at(32))  # and 30 while no scheduler was at work
    assert bench.take() == []
    assert not any(one.sends for one in onebeat.upcoming(count=8))
    assert onebeat.explain("b", at(20)).kind == "skipped"
    assert onebeat.resume(onebeat.ALL, catch_up="latest") == 4
    assert onebeat.resume(onebeat.ALL) == 0
    bench.work(7)
    # What is paused by itself stays so; the others make up for the newest time.
    assert sorted(bench.take()) == [("b", 30), ("c", 30), ("late", 30)]
    bench.work(2)
    assert sorted(bench.take()) == [("b", 40), ("c", 40), ("late", 40)]
    assert {row.detail for row in Occurrence.objects.filter(task_name="b", state="skipped")} == {
        "everything is paused by ann: audit"
    }
    assert actions()[1] == ("pause", "", "ann", "audit", "")


class Killed(BaseException):
    pass


def dies_at(monkeypatch: pytest.MonkeyPatch, name: str, call: int) -> None:
    """The process is killed when this function of the resumption is called so often, and never again."""
    real, calls = getattr(resuming, name), []

    def killed(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == call:
            raise Killed
        return real(*args, **kwargs)

    monkeypatch.setattr(resuming, name, killed)


@pytest.mark.parametrize("catch_up", ["latest", "all"])
@pytest.mark.parametrize(
    ("where", "call"), [("_decide_paused", 2), ("_end", 1), ("_catch_up_portion", 2), ("_catch_up_portion", 4)]
)
def test_a_resumption_of_everything_that_was_killed_is_completed_by_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str, call: int, catch_up: Any
) -> None:
    monkeypatch.setattr(bulk_rows, "PORTION", 2)
    names = ["a", "b", "c", "d", "e"]
    made = [task(name, interval=every(10)) for name in names]
    bench.work(1)
    onebeat.pause(onebeat.ALL)
    bench.work(21)  # 10 and 20 are skipped one by one
    clock.move(at(35))  # and 30 passes while no scheduler is at work
    dies_at(monkeypatch, where, call)
    with pytest.raises(Killed):
        onebeat.resume(onebeat.ALL, catch_up=catch_up)
    bench.tick()  # schedulers go on meanwhile
    assert onebeat.resume(onebeat.ALL, catch_up=catch_up) == 5
    assert onebeat.resume(onebeat.ALL, catch_up=catch_up) == 0
    bench.work(2)
    times = [30] if catch_up == "latest" else [10, 20, 30]
    assert sorted(bench.sent) == [(name, time) for name in names for time in times]
    bench.take()
    bench.work(5)
    assert sorted(bench.take()) == [(name, 40) for name in names]
    for one in made:
        skipped = [row for row in ledger(one) if row[1] == "skipped"]
        assert skipped == [(time, "skipped", "paused") for time in (10, 20, 30)]
    assert not Fact.objects.filter(name=resuming._FACT).exists()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="a file has one writer, who waits")
@pytest.mark.parametrize("which", [onebeat.ALL, onebeat.Tag("mail")], ids=["all", "tag"])
def test_a_resumption_holds_one_portion_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch, which: Any) -> None:
    monkeypatch.setattr(bulk_rows, "PORTION", 2)
    for number in range(6):
        options(task(f"t{number}", interval=every(10)), tags="mail")
    bench.tick()
    onebeat.pause(which)
    clock.move(at(35))
    hold, parts, free = task_states.hold, [], []

    def watched(using: str, ids: Any) -> Any:
        before = list(parts)
        parts.append(sorted(ids))

        def other() -> None:
            with transaction.atomic():
                free.append(len(task_states.lock("default", [pk for part in before for pk in part])))
            connection.close()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(30)
        return hold(using, ids)

    monkeypatch.setattr(task_states, "hold", watched)
    assert onebeat.resume(which, catch_up="latest") == 6
    assert [len(part) for part in parts] == [2, 2, 2]
    assert free == [0, 2, 4]


def test_what_has_too_much_to_catch_up_keeps_everything_paused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_rows, "PORTION", 1)
    for name, seconds in (("a", 10), ("b", 1), ("c", 10)):
        options(task(name, interval=every(seconds)), tags="mail")
    bench.tick()
    for which in (onebeat.ALL, onebeat.Tag("mail")):
        onebeat.pause(which)
        bench.advance(2000)
        with pytest.raises(ValueError, match="catch_up: the pause of 'b' has skipped more than 1000"):
            onebeat.resume(which, catch_up="all")
        assert bench.take() == []
        bench.tick()
        assert bench.take() == []
        assert onebeat.resume(which, catch_up="latest") == 3
        bench.tick()
        assert len(bench.take()) == 3


def test_unknown_names_list_near_ones(bench: Bench) -> None:
    options(task("send invoices"), tags="billing")
    for which, text in (
        ("Send invoice", "there is no task 'Send invoice': did you mean 'send invoices'?"),
        (onebeat.Tag("biling"), "there is no task 'tagged biling': did you mean 'billing'?"),
        ("x", "there is no task 'x': no name is near it"),
    ):
        with pytest.raises(onebeat.UnknownTask) as found:
            onebeat.pause(which)
        assert str(found.value) == text


def test_skip_takes_one_time_out(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(5)
    assert onebeat.skip("t", at(20), "holiday", by="ann")
    bench.work(30)
    assert bench.sent == [("t", 10), ("t", 30)]
    assert ledger(one)[1] == (20, "skipped", "cancelled")
    assert Occurrence.objects.get(due_at=at(20)).detail == "skipped by ann: holiday"
    assert not onebeat.skip("t", at(10))
    assert not onebeat.skip("t", at(20))
    with pytest.raises(ValueError, match=r"at: 't' has no time .*10:00:45.* the next one is 2026-03-10T10:00:50"):
        onebeat.skip("t", at(45))
    with pytest.raises(ValueError, match=r"at: .* has no time zone"):
        onebeat.skip("t", at(50).replace(tzinfo=None))


def test_run_now_moves_nothing_and_asks_no_policy(bench: Bench) -> None:
    one = task(interval=every(10), args='["x"]', queue="fast")
    bench.work(12)
    options(one, paused=True, grace_seconds=1)
    one.enabled = False
    one.save()
    first, second = onebeat.run_now("t", "now", by="ann"), onebeat.run_now(one)
    assert first.celery_task_id != second.celery_task_id
    bench.advance(60)
    assert bench.sent == [("t", 10), ("t", 12), ("t", 12)]
    last = bench.outbox.messages[-1]
    assert (last.id, last.args, last.options["queue"]) == (str(second.celery_task_id), ["x"], "fast")
    assert [row.run for row in Occurrence.objects.filter(due_at=at(12)).order_by("run")] == [1, 2]
    one.enabled = True
    one.save()
    options(one, paused=False)
    bench.work(10)
    assert bench.sent[3:] == [("t", 80)]


def test_run_now_rolls_back_and_waits_for_the_broker(bench: Bench) -> None:
    task()
    bench.tick()
    with pytest.raises(RuntimeError), transaction.atomic():
        onebeat.run_now("t")
        raise RuntimeError
    bench.advance(1)
    assert bench.sent == []
    bench.outbox.unavailable = True
    onebeat.run_now("t")
    bench.advance(20)
    bench.outbox.unavailable = False
    bench.advance(1)
    assert bench.sent == [("t", 1)]
