"""Several schedulers on one database: they share the work, and take over what one of them left behind."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from onebeat.core import clock, identity
from onebeat.dispatch.base import PublishResult, Unsent
from onebeat.models import Beat, ClaimedBatch, Fact, Occurrence, PeriodicTask, TaskState
from onebeat.models.instants import from_utc
from onebeat.store import batches, claims, recovery, settling
from onebeat.store import occurrences as rows
from onebeat.store.claims import Terms
from tests.engine.kit import Bench, at, clocked, due, every, ledger, options, set_task, sweep, task

LEASE = 30


@pytest.fixture
def other(bench: Bench) -> Iterator[Bench]:
    """A second scheduler beside `bench`, at work as long."""
    second = Bench()
    second.tick()
    yield second
    second.engine.close()


def both(first: Bench, second: Bench, duration: int) -> None:
    """Both tick every second for so long."""
    for _ in range(duration):
        clock.move(clock.host_now() + timedelta(seconds=1))
        first.tick()
        second.tick()


def test_each_occurrence_is_sent_by_one_of_them(bench: Bench, other: Bench) -> None:
    for name in "abc":
        task(name, interval=every(1))
    for number in range(10):
        task(f"once {number}", clocked=clocked(at(number)))
        both(*((bench, other) if number % 2 else (other, bench)), 1)
    sent = bench.sent + other.sent
    assert len(sent) == len(set(sent)) == 40
    assert bench.sent
    assert other.sent
    assert Occurrence.objects.filter(state="sent").count() == 40


def test_an_occurrence_that_is_in_the_ledger_already_is_somebody_elses(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.tick()
    Occurrence.objects.create(
        task=one,
        task_uid=TaskState.objects.get(pk=one.pk).uid,
        task_name="t",
        due_at=at(10),
        state="sent",
        celery_task_id=uuid.uuid4(),
        decided_at=at(9),
    )
    bench.work(11)
    assert (bench.sent, due(one)) == ([], 20)
    bench.work(9)
    assert bench.sent == [("t", 20)]


@pytest.mark.parametrize("point", ["claimed", "published"])
def test_what_a_dead_scheduler_left_is_sent_by_another_when_its_lease_has_passed(
    bench: Bench, other: Bench, point: str
) -> None:
    one = task(clocked=clocked(at(5)))
    other.tick()
    clock.move(at(5))
    bench.die_at(point)
    copies = {"claimed": [], "published": [("t", 5)]}[point]
    assert bench.sent == copies
    other.work(LEASE - 1)
    assert other.sent == []
    other.work(7)
    assert other.sent == [("t", 5)]
    assert ledger(one) == [(5, "sent", "")]
    ids = {message.id for message in bench.outbox.messages + other.outbox.messages}
    space = uuid.UUID(Fact.objects.get(pk="namespace").value)
    assert ids == {str(identity.celery_task_id(space, TaskState.objects.get(pk=one.pk).uid, at(5)))}
    other.work(LEASE + 5)
    assert other.sent == [("t", 5)]
    other.engine.run_counts.write()
    one.refresh_from_db()
    assert not one.enabled


def test_what_a_dead_scheduler_recorded_is_not_sent_again(bench: Bench, other: Bench) -> None:
    task(clocked=clocked(at(5)))
    other.tick()
    clock.move(at(5))
    bench.die_at("settled")
    other.work(LEASE + 7)
    assert (bench.sent, other.sent) == ([("t", 5)], [])


def test_a_scheduler_that_died_between_sending_and_counting_leaves_no_one_off_enabled(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.work(5)
    bench.engine.run_counts._runs.clear()
    sweep()
    one.refresh_from_db()
    assert one.enabled, "whoever sent it may still write it"
    clock.move(at(90))
    sweep()
    one.refresh_from_db()
    assert not one.enabled


def _gone(one: PeriodicTask) -> None:
    one.delete()


def _disabled(one: PeriodicTask) -> None:
    set_task(one, enabled=False)


def _paused(one: PeriodicTask) -> None:
    options(one, paused=True)


def _paused_until(one: PeriodicTask) -> None:
    options(one, paused=True, paused_until=at(1000))


def _beyond_grace(one: PeriodicTask) -> None:
    options(one, grace_seconds=20)


def _expired(one: PeriodicTask) -> None:
    one.expires = from_utc(at(12))
    one.save()


def _quarantined(one: PeriodicTask) -> None:
    set_task(one, args="nothing")


VERDICTS = [
    (_gone, "cancelled"),
    (_disabled, "disabled"),
    (_paused, "paused"),
    (_paused_until, "paused"),
    (_beyond_grace, "missed"),
    (_expired, "expired"),
    (_quarantined, "quarantined"),
]


@pytest.mark.parametrize(("happens", "verdict"), VERDICTS, ids=[each[0].__name__ for each in VERDICTS])
def test_a_lost_occurrence_is_decided_again_before_it_is_sent(  # type: ignore[no-untyped-def]
    bench: Bench, other: Bench, happens, verdict: str
) -> None:
    one = task(interval=every(1, "hours"), start_time=from_utc(at(10)))
    key = one.pk
    other.tick()
    clock.move(at(10))
    bench.die_at("claimed")
    happens(one)
    other.work(LEASE + 7)
    assert other.sent == []
    (row,) = Occurrence.objects.filter(task_id=key)
    assert (row.state, row.reason) == ("skipped", verdict)
    assert not ClaimedBatch.objects.exists()
    assert row.task_name == "t"


def test_a_lost_occurrence_is_coalesced_when_nobody_was_at_work(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.tick()
    clock.move(at(10))
    bench.die_at("claimed")
    clock.move(at(65))
    late = Bench()
    late.tick()
    assert late.sent == [("t", 60)]
    assert ledger(one) == [(10, "skipped", "coalesced"), (20, "skipped", "coalesced"), (60, "sent", "")]
    late.engine.close()


def test_a_lost_occurrence_without_a_successor_is_not_coalesced(bench: Bench) -> None:
    """After an edit the new rule has times between the lost one and now, but none of them had a turn."""
    one = task(interval=every(10), enabled=True)
    bench.tick()
    clock.move(at(10))
    bench.die_at("claimed")
    one.interval = every(1, "hours")
    clock.move(at(100))
    one.start_time = from_utc(at(-3540))
    one.save()
    late = Bench()
    late.tick()
    assert late.sent == [("t", 10)]
    late.engine.close()


def test_lost_occurrences_of_busy_schedulers_are_late_and_all_are_sent(bench: Bench, other: Bench) -> None:
    one = task(interval=every(1))
    options(one, missed="skip")
    other.tick()
    clock.move(at(1))
    bench.die_at("claimed")
    other.work(LEASE + 7)
    assert sorted(other.sent) == [("t", n) for n in range(1, LEASE + 9)]


def test_a_scheduler_that_slept_through_its_lease_publishes_nothing(bench: Bench, other: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    other.tick()

    def sleep(point: str) -> None:
        if point == "claimed":
            clock.move(at(5 + LEASE))

    clock.move(at(5))
    bench.engine.parts.at = sleep
    bench.tick()
    assert bench.sent == []
    bench.engine.parts.at = lambda point: None
    other.work(1)
    bench.work(5)
    assert bench.sent + other.sent == [("t", 5)]
    assert ledger(one) == [(5, "sent", "")]


def test_a_claim_that_another_took_over_is_not_settled(bench: Bench, other: Bench) -> None:
    """The first wakes up after it has published, when the second has claimed the same occurrence."""
    one = task(clocked=clocked(at(5)))
    other.tick()

    def sleep(point: str) -> None:
        if point == "published":
            clock.move(at(6 + LEASE))
            other.die_at("claimed")

    clock.move(at(5))
    bench.engine.parts.at = sleep
    bench.tick()
    assert ledger(one) == [(5, "claimed", "")]
    (row,) = Occurrence.objects.all()
    assert (row.claims, batches.lease_end("default", row.claim_token)) == (2, at(6 + 2 * LEASE))


def test_a_partly_settled_batch_is_recovered_for_the_rest_alone(bench: Bench, other: Bench) -> None:
    for name in "abc":
        task(name, clocked=clocked(at(5)))
    bench.tick()
    other.tick()
    clock.move(at(5))
    batch = claims.due("default", Terms(7, timedelta(seconds=LEASE), 10, lambda now: now), None)
    first, second, third = batch.occurrences
    assert settling.sent("default", batch.token, [first.id]) == 1
    settling.postpone("default", batch.token, second.id, at(5 + 3 * LEASE), "no")
    batches.close("default", [batch.token])
    other.work(LEASE - 1)
    assert other.sent == []
    other.work(8)
    assert other.sent == [(third.task.name, 5)]
    other.work(2 * LEASE)
    assert other.sent == [(third.task.name, 5), (second.task.name, 5)]
    counted = dict(Occurrence.objects.values_list("pk", "claims"))
    assert counted == {first.id: 1, second.id: 1, third.id: 2}, "what was given back was claimed once"
    other.work(LEASE)
    assert not ClaimedBatch.objects.exclude(holder=None, lease_until__gt=at(0)).filter(lease_until__lte=at(40)).exists()


def test_giving_back_is_the_work_of_one_row(bench: Bench, other: Bench) -> None:
    for number in range(20):
        task(f"t{number}", clocked=clocked(at(5)))
    other.tick()
    clock.move(at(5))
    bench.die_at("claimed")
    with CaptureQueriesContext(connection) as made:
        bench.engine.close()
    writes = [one["sql"] for one in made if one["sql"].startswith("UPDATE") and "onebeat_occurrence" in one["sql"]]
    assert writes == []
    other.tick()
    assert len(other.sent) == 20, "and nobody waits for the lease"


def test_a_slow_broker_keeps_its_batch(bench: Bench, other: Bench) -> None:
    """It takes longer for the batch than the lease lasts, and the others look for lost ones all the time."""
    slow = Bench(flush_size=1)
    for number in range(8):
        task(f"t{number}", clocked=clocked(at(5)))
    slow.tick()
    other.tick()
    accepts = slow.outbox.answer

    def answer(message: Any) -> PublishResult:
        clock.move(clock.host_now() + timedelta(seconds=LEASE / 4))
        other.tick()
        return accepts(message)

    slow.outbox.answer = answer
    clock.move(at(5))
    with clock.using(clock.Source(monotonic=lambda: (clock.host_now() - at(0)).total_seconds())):
        slow.tick()
    assert (len(slow.sent), other.sent) == (8, [])
    slow.engine.close()


def test_a_settled_batch_leaves_with_the_next_claim(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(10)
    (first,) = ClaimedBatch.objects.all()
    bench.work(10)
    (second,) = ClaimedBatch.objects.all()
    assert first.token != second.token
    bench.work(LEASE + 6)
    bench.engine.close()
    assert ClaimedBatch.objects.count() == 1


def test_a_database_lost_before_the_outcome_was_recorded_makes_no_copies(bench: Bench, other: Bench) -> None:
    """The process lives and knows what the broker has: it records that in its next tick."""
    one = task(interval=every(10))

    def lost(point: str) -> None:
        if point == "published":
            raise OperationalError("server closed the connection unexpectedly")

    bench.work(9)
    bench.engine.parts.at = lost
    with pytest.raises(OperationalError):
        bench.advance(1)
    bench.engine.parts.at = lambda point: None
    both(bench, other, 3)
    assert bench.sent + other.sent == [("t", 10)]
    assert ledger(one) == [(10, "sent", "")]
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert one.total_run_count == 1


def test_a_database_lost_after_the_claim_gives_it_back_at_once(bench: Bench) -> None:
    one = task(interval=every(10))

    def lost(point: str) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    bench.work(9)
    bench.engine.parts.at = lost
    with pytest.raises(OperationalError):
        bench.advance(1)
    bench.engine.parts.at = lambda point: None
    bench.work(1)
    assert bench.sent == [("t", 10)]
    assert ledger(one) == [(10, "sent", "")]


def test_closing_gives_back_what_is_claimed(bench: Bench, other: Bench) -> None:
    task(interval=every(10))
    other.tick()
    clock.move(at(10))
    bench.die_at("claimed")
    bench.engine.close()
    bench.engine.close()
    other.work(6)
    assert other.sent == [("t", 10)]


def test_somebody_asked_to_stop_in_the_middle_of_a_batch(bench: Bench, other: Bench) -> None:
    small = Bench(flush_size=2, batch_size=6)
    small.tick()
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(8)])
    small.tick()
    small.engine.parts.stopping = lambda: len(small.outbox.messages) >= 2
    clock.move(at(10))
    small.tick()
    small.engine.close()
    assert len(small.sent) == 2
    other.tick()
    other.work(6)
    sent = small.sent + other.sent
    assert len(sent) == len(set(sent)) == 8


def test_copies_of_a_claim_are_counted_up_to_what_the_column_holds(bench: Bench) -> None:
    task(interval=every(1, "hours"), start_time=from_utc(at(10)))
    bench.outbox.answer = lambda message: Unsent("full")
    bench.work(10)
    Occurrence.objects.update(claims=32_767)
    bench.work(12)
    bench.outbox.answer = Bench().outbox.answer
    bench.work(12)
    assert bench.sent == [("t", 10)]


def test_the_water_mark_stands_for_occurrences_that_are_pruned(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(20)
    Occurrence.objects.all().delete()
    one.description = "edited"
    one.save()
    set_task(one, last_run_at=None)
    bench.work(9)
    assert bench.sent == [("t", 10), ("t", 20)]


def test_a_row_of_a_scheduler_that_somebody_tidied_away_comes_back(bench: Bench) -> None:
    Beat.objects.all().delete()
    bench.work(4)
    (row,) = Beat.objects.all()
    assert row.stopped_at is None
    assert row.seen_at >= at(2)


def test_the_namespace_is_one_for_each_database_and_stays(bench: Bench) -> None:
    first = rows.namespace("default")
    assert rows.namespace("default") == first
    Fact.objects.all().delete()
    assert rows.namespace("default") != first


def test_a_claim_of_nothing_is_empty(bench: Bench) -> None:
    terms = Terms(beat=1, lease=timedelta(seconds=30), limit=10, missed_before=lambda now: now)
    assert claims.due("default", terms, None).occurrences == []
    assert recovery.reclaim("default", terms).occurrences == []
