"""A broker that is away, fails in the middle, or refuses a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import OperationalError

from onebeat.core import clock
from onebeat.core.headers import NAME_HEADER
from onebeat.dispatch.base import Accepted, Deferred, Failed, Message, PublishResult, Refused, Unsent
from onebeat.models import Beat, Occurrence, PeriodicTask
from onebeat.queries.explain import explain
from onebeat.store import settling
from tests.engine.kit import Bench, at, clocked, every, ledger, options, set_task, task


def name(message: Message) -> str:
    return str(message.options["headers"][NAME_HEADER])


def accept(message: Message) -> PublishResult:
    return Accepted()


def only_fails(*names: str, outcome: PublishResult | None = None) -> Callable[[Message], PublishResult]:
    """These cannot be sent; all others can."""
    return lambda message: (outcome or Unsent("cut")) if name(message) in names else Accepted()


def many(number: int, **fields: Any) -> list[str]:
    made = [PeriodicTask(name=f"t{n:02}", task="t", interval=every(10), **fields) for n in range(number)]
    PeriodicTask.objects.bulk_create(made)
    return [one.name for one in made]


def test_nothing_is_claimed_while_the_broker_is_away(bench: Bench) -> None:
    one = task(interval=every(1))
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(20)
    assert ledger(one) == []
    bench.outbox.unavailable = False
    bench.advance(0.5)
    assert bench.sent == [("t", 20)]
    assert ledger(one) == [(1, "skipped", "coalesced"), (20, "sent", "")]


def test_a_task_disabled_while_the_broker_is_away_sends_nothing_afterwards(bench: Bench) -> None:
    for way in ("orm", "raw"):
        task(way, interval=every(1))
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(10)
    PeriodicTask.objects.filter(name="orm").update(enabled=False)
    set_task(PeriodicTask.objects.get(name="raw"), enabled=False)
    bench.work(10)
    bench.outbox.unavailable = False
    bench.work(5)
    assert bench.sent == []
    assert set(Occurrence.objects.values_list("state", "reason")) == {("skipped", "disabled")}


def test_one_offs_wait_for_the_broker(bench: Bench) -> None:
    task(clocked=clocked(at(5)))
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(1000 // 50)
    bench.outbox.unavailable = False
    bench.work(2)
    assert bench.sent == [("t", 5)]


@pytest.mark.parametrize("missed", ["latest", "skip", "all"])
def test_a_broker_lost_in_the_middle_of_a_batch_loses_nothing(bench: Bench, missed: str) -> None:
    """The rest is given back and sent by the next tick, under the same ids."""
    names = many(30)
    for one in PeriodicTask.objects.all():
        options(one, missed=missed)
    bench.work(9)
    sent: list[str] = []

    def cut(message: Message) -> PublishResult:
        sent.append(message.id)
        return Unsent("connection reset") if len(sent) == 12 else Accepted()

    bench.outbox.answer = cut
    bench.work(1)
    assert len(bench.sent) == 11
    bench.work(1)
    assert sorted(bench.sent) == [(one, 10) for one in names]
    assert len({message.id for message in bench.outbox.messages}) == 30
    assert set(Occurrence.objects.values_list("state", flat=True)) == {"sent"}


def test_a_refused_message_is_set_aside_and_the_rest_goes_on(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    many(5)
    bench.outbox.answer = only_fails("t02", outcome=Refused("no such queue"))
    bench.work(10)
    assert sorted(sent for sent, _ in bench.sent) == ["t00", "t01", "t03", "t04"]
    row = Occurrence.objects.get(task_name="t02")
    assert (row.state, row.reason, row.detail) == ("skipped", "refused", "no such queue")
    assert "no such queue" in caplog.text
    bench.work(10)
    assert Occurrence.objects.filter(task_name="t02", reason="refused").count() == 2


def test_a_message_that_breaks_every_connection_holds_up_nobody_else(bench: Bench) -> None:
    """It fails whenever it is tried; the broker answers all the same."""
    names = many(12, one_off=True)
    options(task("skipping", interval=every(20)), missed="skip")
    bench.outbox.answer = only_fails("t03")
    bench.work(14)
    assert {sent for sent, _ in bench.sent} == set(names) - {"t03"}
    bench.work(50)
    assert [sent for sent in bench.sent if sent[0] == "skipping"] == [("skipping", n) for n in (20, 40, 60)]
    assert ledger(PeriodicTask.objects.get(name="t03")) == [(10, "claimed", "")]
    bench.outbox.answer = accept
    bench.work(6)
    assert ("t03", 10) in bench.sent


def test_one_failing_message_alone_does_not_make_the_turns_of_others_missed(bench: Bench) -> None:
    options(task("skipping", interval=every(60)), missed="skip")
    task("poison", clocked=clocked(at(1)))
    bench.outbox.answer = only_fails("poison")
    for _ in range(130):
        bench.advance(0.95)
    assert bench.sent == [("skipping", 60), ("skipping", 120)]


def test_a_broker_that_answers_and_takes_nothing_gets_one_late_run_afterwards(bench: Bench) -> None:
    """As a Redis that is full: connections are fine, every publish fails."""
    one = task(interval=every(1))
    bench.tick()
    bench.outbox.answer = lambda message: Unsent("OOM command not allowed")
    bench.work(60)
    assert Occurrence.objects.filter(state="claimed").count() <= 10
    assert Beat.objects.get(pk=bench.engine.heartbeat.row).able_since is None
    bench.outbox.answer = accept
    bench.advance(0.5)
    bench.work(12)
    late = [nominal for _, nominal in bench.sent if nominal is not None and nominal <= 60]
    assert len(late) <= 10
    assert [nominal for _, nominal in bench.sent if nominal is not None and nominal > 60] == list(range(61, 73))
    covered = sum(
        1 if row.last_due_at is None else round((row.last_due_at - row.due_at).total_seconds()) + 1
        for row in Occurrence.objects.filter(task_id=one.pk)
    )
    assert covered == 72


def test_what_is_away_and_since_when_is_told(bench: Bench) -> None:
    mine = Beat.objects.get(pk=bench.engine.heartbeat.row)
    assert mine.able_since == at(0)
    bench.outbox.unavailable = True
    bench.work(1)
    mine.refresh_from_db()
    assert mine.able_since is None
    bench.outbox.unavailable = False
    bench.work(1)
    mine.refresh_from_db()
    assert mine.able_since == at(2)
    bench.engine.close()
    mine.refresh_from_db()
    assert mine.stopped_at == at(2)


def test_another_scheduler_that_could_send_makes_a_turn_late_and_not_missed(bench: Bench) -> None:
    """Missed is what no scheduler could have sent. One whose broker is back finds the other able all the time."""
    options(task(interval=every(10)), missed="skip")
    other = Bench()
    other.tick()
    bench.work(5)
    other.tick()
    bench.outbox.unavailable = True
    for _ in range(6):
        bench.advance(1)
        other.engine.heartbeat.tick_begins(at(0) + (at(1) - at(0)) * 11, True)
    bench.outbox.unavailable = False
    bench.work(2)
    assert bench.sent == [("t", 10)]
    other.engine.close()


def test_a_broker_that_takes_nothing_is_asked_now_and_then(bench: Bench) -> None:
    """Also when a task comes due meanwhile, which nobody may claim: no tick wants the next one at once."""
    task("a", clocked=clocked(at(1)))
    task("b", interval=every(1))
    bench.outbox.answer = lambda message: Unsent("no")
    bench.work(20)
    waits = []
    for _ in range(30):
        clock.move(clock.host_now() + timedelta(seconds=1))
        waits.append(bench.tick())
    assert bench.engine.heartbeat.broker_takes_nothing
    assert min(waits) > 0


def test_what_somebodys_own_code_raises_is_tried_again_with_growing_pauses_and_explained(bench: Bench) -> None:
    many(3, one_off=True)
    tried: list[float] = []

    def fails(message: Message) -> PublishResult:
        if message.options["headers"]["periodic_task_name"] != "t01":
            return Accepted()
        tried.append((clock.host_now() - at(0)).total_seconds())
        return Failed("LockTimeout: somebody holds it")

    bench.outbox.answer = fails
    bench.work(30)
    first = [second for second in tried if second < 30][:4]
    assert first[0] == 10 and all(later > earlier for earlier, later in pairwise(first))
    row = Occurrence.objects.filter(task_name="t01").earliest("due_at")
    assert (row.state, row.publish_failures > 1) == ("claimed", True)
    clock.move(at(41))
    assert "LockTimeout" in explain("default", "t01", row.due_at).sentence
    bench.outbox.answer = accept
    bench.work(70)
    assert ("t01", 10) in bench.sent


def test_neither_the_text_of_an_error_nor_how_often_it_came_stops_a_tick(bench: Bench) -> None:
    many(2, one_off=True)
    bench.outbox.answer = only_fails("t00", outcome=Unsent("no\0thing " + "x" * 5000))
    bench.work(11)
    failing = Occurrence.objects.filter(task_name="t00")
    assert failing.get().detail.startswith("publishing failed: nothing x")
    failing.update(publish_failures=32_767)
    bench.work(4000)
    assert set(failing.values_list("state", "publish_failures")) == {("claimed", 32_001)}
    assert bench.sent == [("t01", 10)]


def test_a_connection_that_broke_inside_a_batch_is_suspected_though_the_last_message_was_taken(bench: Bench) -> None:
    names = many(3, one_off=True)
    asked: list[tuple[list[str], bool]] = []
    take = bench.outbox.publish

    def publish(messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        asked.append(([name(message) for message in messages], singly))
        if len(asked) > 1:
            return take(messages, singly=singly)
        return [Accepted(), Unsent("cut", alone=False), Accepted()]

    bench.outbox.publish = publish  # type: ignore[method-assign]
    bench.work(12)
    assert (sorted(asked[0][0]), asked[0][1]) == (names, False)
    assert asked[1][1]
    assert set(Occurrence.objects.values_list("state", flat=True)) == {"sent"}


def test_what_the_broker_has_is_not_sent_again_when_the_record_of_another_message_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(3, one_off=True)
    postpone, failures = settling.postpone, [OperationalError("deadlock detected")]
    deferred = Deferred("the queue is full")
    bench.outbox.answer = lambda message: deferred if failures and name(message) == "t01" else Accepted()

    def fails_once(*args: Any) -> None:
        if failures:
            raise failures.pop()
        postpone(*args)

    monkeypatch.setattr(settling, "postpone", fails_once)
    bench.work(9)
    with pytest.raises(OperationalError):
        bench.work(1)
    bench.work(30)
    ids = [message.id for message in bench.outbox.messages]
    assert len(ids) == len(set(ids)) == 3
    assert set(Occurrence.objects.values_list("state", flat=True)) == {"sent"}
