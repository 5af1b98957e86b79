"""One task, message or setting at the edge of what there is must not stop, starve or repeat anything else."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import models

from onebeat import conf
from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.core.headers import NAME_HEADER
from onebeat.dispatch.base import Accepted, Deferred, Message, PublishResult, Unsent
from onebeat.engine.stop import Stop
from onebeat.models import ClockedSchedule, Occurrence, PeriodicTask, TaskOptions, TaskState
from tests.engine.kit import Bench, at, clocked, every, ledger, options, task


def test_what_the_broker_took_after_a_failure_is_recorded_and_not_sent_again(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(4)])
    failed: list[str] = []

    class Skipping:
        """Loses the second message of its first call and takes all others."""

        def publish(self, messages: list[Message], *, singly: bool = False) -> list[PublishResult]:
            outcomes: list[PublishResult] = []
            for number, message in enumerate(messages):
                lost = number == 1 and not failed
                failed.extend([message.id] if lost else [])
                outcomes.append(Unsent("cut") if lost else Accepted())
                if not lost:
                    bench.outbox.messages.append(message)
            return outcomes

    bench.outbox.publish = Skipping().publish  # type: ignore[method-assign,assignment]
    bench.work(12)
    ids = [message.id for message in bench.outbox.messages]
    assert len(ids) == len(set(ids)) == 4
    assert failed[0] in ids


def _calls(bench: Bench, lost: int) -> list[tuple[int, bool]]:
    """What the outbox is asked to publish from now on: how many, and whether singly. The first `lost` calls are."""
    calls: list[tuple[int, bool]] = []
    take = bench.outbox.publish

    def publish(messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        calls.append((len(messages), singly))
        if len(calls) <= lost:
            return [Unsent("the connection was lost", alone=False)] * len(messages)
        return take(messages, singly=singly)

    bench.outbox.publish = publish  # type: ignore[method-assign]
    return calls


def test_after_a_lost_batch_messages_go_singly_until_all_have_gone(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(10)) for n in range(4)])
    calls = _calls(bench, 1)
    bench.work(20)
    assert calls == [(4, False), (4, True), (4, False)]


def test_what_one_scheduler_left_goes_as_one_batch_and_what_two_left_singly(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(1000)) for n in range(6)])
    bench.tick()
    clock.move(at(1000))
    bench.die_at("claimed")
    clock.move(at(1040))
    heir = Bench()
    calls = _calls(heir, 0)
    heir.die_at("claimed")
    clock.move(at(1080))
    second = Bench()
    after = _calls(second, 0)
    second.tick()
    assert (calls, after) == ([], [(6, True)])


def test_what_a_lost_scheduler_left_goes_out_at_once(bench: Bench) -> None:
    """Not a batch for each poll, and in batches like any other."""
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(1000)) for n in range(6)])
    bench.tick()
    clock.move(at(1000))
    bench.die_at("claimed")
    clock.move(at(1040))
    heir = Bench(batch_size=4)
    calls = _calls(heir, 0)
    assert heir.tick() == 0
    heir.tick()
    assert calls == [(4, False), (2, False)]


def test_a_time_at_the_end_of_the_calendar_stops_nobody(bench: Bench) -> None:
    never, _ = ClockedSchedule.objects.get_or_create(clocked_time=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    options(task("never", clocked=never), jitter_seconds=3600)
    task("healthy", interval=every(1))
    bench.work(3)
    assert [name for name, _ in bench.sent] == ["healthy"] * 3
    assert TaskState.objects.get(task__name="never").quarantine == ""


def test_a_batch_is_bounded_in_messages(bench: Bench) -> None:
    """With the policy `all`, many tasks may each owe many runs; what goes over the bound waits for the next batch."""
    for number in range(6):
        options(task(f"t{number}", interval=every(1)), missed="all")
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(40)
    bench.outbox.unavailable = False
    bench.engine.parts.settings = Settings(sweep_size=0, batch_size=50)
    sizes: list[int] = []
    bench.engine.parts.at = lambda point: sizes.append(Occurrence.objects.filter(state="claimed").count())
    bench.work(6)
    assert max(sizes) == 50
    assert Occurrence.objects.filter(state="sent").count() == 6 * 46
    for number in range(6):
        due = [when for name, when in bench.sent if name == f"t{number}"]
        assert due == list(range(1, 47))


def test_a_full_queue_holds_up_no_other(bench: Bench) -> None:
    PeriodicTask.objects.bulk_create(
        [PeriodicTask(name=f"full{n:03}", task="t", clocked=clocked(at(2)), one_off=True) for n in range(150)]
    )
    task("healthy", interval=every(1))

    def answer(message: Message) -> PublishResult:
        full = message.options["headers"][NAME_HEADER].startswith("full")
        return Deferred("its queue is full") if full else Accepted()

    bench.outbox.answer = answer
    bench.work(12)
    assert bench.sent == [("healthy", second) for second in range(1, 13)]
    bench.outbox.answer = lambda message: Accepted()
    bench.work(6)
    assert len([name for name, _ in bench.sent if name.startswith("full")]) == 150


def test_a_change_of_options_is_seen(bench: Bench) -> None:
    one = task(interval=every(60))
    options(one, jitter_seconds=50)
    bench.tick()
    state = TaskState.objects.get(task=one)
    assert state.due_at is not None
    assert state.wake_at > state.due_at
    for change in (
        lambda: TaskOptions.objects.filter(task=one).update(jitter_seconds=0),
        lambda: options(one, jitter_seconds=50),
        lambda: TaskOptions.objects.get(task=one).delete(),
        lambda: TaskOptions.objects.bulk_create([TaskOptions(task=one, jitter_seconds=50)]),
        lambda: TaskOptions.objects.filter(task=one).delete(),
    ):
        before = TaskState.objects.get(task=one).wake_at
        change()
        bench.tick()
        assert TaskState.objects.get(task=one).wake_at != before


def test_an_overdue_task_that_is_deleted_leaves_a_record(bench: Bench) -> None:
    one = task(interval=every(5))
    key = one.pk
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(7)
    PeriodicTask.objects.filter(pk=key).delete()
    bench.outbox.unavailable = False
    bench.work(2)
    assert bench.sent == []
    assert list(Occurrence.objects.filter(task_id=key).values_list("state", "reason")) == [("skipped", "cancelled")]
    assert not TaskState.objects.filter(pk=key).exists()


def test_times_that_passed_in_quarantine_are_recorded(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(10)
    rows: models.QuerySet[PeriodicTask] = models.QuerySet(PeriodicTask)
    rows.filter(pk=one.pk).update(kwargs="[")  # past the rules and without a hint
    bench.work(50)
    PeriodicTask.objects.filter(pk=one.pk).update(kwargs="{}")
    bench.work(20)
    skipped = [
        (row.due_at, row.last_due_at or row.due_at)
        for row in Occurrence.objects.filter(reason="quarantined").order_by("due_at")
    ]
    covered = {when for when in range(20, 61, 10) for first, last in skipped if first <= at(when) <= last}
    assert covered == {20, 30, 40, 50, 60}
    assert [when for _, when in bench.sent] == [10, 70, 80]


def test_a_time_moved_away_and_back_runs(bench: Bench) -> None:
    one = task(clocked=clocked(at(10)))
    bench.tick()
    bench.outbox.unavailable = True
    bench.work(20)
    one.clocked = clocked(at(100))
    one.save()
    bench.work(5)
    assert ledger(one) == [(10, "skipped", "edited")]
    one.clocked = clocked(at(10))
    one.save()
    bench.work(1)
    bench.outbox.unavailable = False
    bench.work(2)
    assert bench.sent == [("t", 10)]
    assert ledger(one) == [(10, "sent", "")]


def test_run_state_is_written_under_a_standing_backlog(bench: Bench) -> None:
    bench.engine.parts.settings = Settings(sweep_size=0, batch_size=1)
    PeriodicTask.objects.bulk_create([PeriodicTask(name=f"t{n}", task="t", interval=every(1)) for n in range(3)])
    bench.work(3)
    with clock.using(clock.Source(monotonic=lambda: 1.01 * bench.engine.parts.settings.run_state_seconds)):
        bench.tick()
    assert PeriodicTask.objects.filter(total_run_count__gt=0).exists()


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({"poll_interval": 10}, "away_seconds"),
        ({"batch_size": 20_000}, "batch_size"),
        ({"poll_interval": 0}, "poll_interval"),
        ({"lease": 3}, "lease"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"import_alias": 1}, "import_alias"),
        ([], "dict"),
    ],
)
def test_settings_that_would_break_a_promise_are_named(raw: object, word: str) -> None:
    (problem,) = conf.problems(raw)
    assert word in problem


def test_a_pair_of_settings_that_do_not_fit_is_left_at_the_default(settings: pytest.FixtureRequest) -> None:
    settings.ONEBEAT = {"poll_interval": 10, "batch_size": 7}  # type: ignore[attr-defined]
    assert (conf.current().poll_interval, conf.current().batch_size) == (1.0, 7)


def test_a_signal_in_the_middle_of_a_wait_ends_it() -> None:
    """A handler runs in the thread that waits: what it calls must not need a lock that the wait holds."""
    for _ in range(200):
        stop = Stop()
        with stop.on_signals():
            timer = threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGTERM))
            timer.start()
            while not stop.wait(0.0):
                pass
            timer.join()
        assert stop.requested()


def test_a_wait_without_a_request_ends() -> None:
    assert Stop().wait(timedelta(milliseconds=5).total_seconds()) is False
