"""The signals: once each, after the commit, outside any transaction, whatever a receiver does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction

import onebeat
from onebeat import signals
from onebeat.dispatch.base import Refused
from onebeat.models import Occurrence, PeriodicTask
from tests.engine.kit import Bench, at, clocked, every, options, set_task, task


@contextmanager
def heard(signal: Any) -> Iterator[list[dict[str, Any]]]:
    found: list[dict[str, Any]] = []

    def listen(signal: Any, sender: Any, **told: Any) -> None:
        found.append({**told, "sender": sender, "inside": connection.in_atomic_block})
        raise RuntimeError("a receiver that fails")

    signal.connect(listen)
    try:
        yield found
    finally:
        signal.disconnect(listen)


def test_sent(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    one = task(interval=every(10))
    state_when_told = []
    signals.task_sent.connect(
        note := lambda occurrence_id, **told: state_when_told.append(Occurrence.objects.get(pk=occurrence_id).state)
    )
    with heard(signals.task_sent) as found:
        bench.work(10)
        onebeat.run_now("t")
        bench.tick()
    signals.task_sent.disconnect(note)
    assert [(told["task"], told["task_id"], told["due_at"], told["run"]) for told in found] == [
        ("t", one.pk, at(10), 0),
        ("t", one.pk, at(10), 1),
    ]
    assert [str(told["celery_task_id"]) for told in found] == [message.id for message in bench.outbox.messages]
    assert [(told["sender"], told["inside"], told["using"]) for told in found] == [(Occurrence, False, "default")] * 2
    assert state_when_told == ["sent", "sent"]
    assert caplog.text.count("RuntimeError: a receiver that fails") == 2


def test_skipped(bench: Bench) -> None:
    one = task("p", interval=every(10))
    options(one, paused=True)
    late = task("late", interval=every(10))
    task("refused", clocked=clocked(at(5)))
    bench.outbox.answer = lambda message: Refused("no such queue")
    with heard(signals.occurrence_skipped) as found:
        bench.work(5)
        onebeat.skip("late", at(30), "why", by="ann")
        with pytest.raises(RuntimeError), transaction.atomic():
            onebeat.skip("late", at(40))
            raise RuntimeError
        options(late, missed="skip")
        bench.advance(20)
    told = sorted((one["task"], one["due_at"], one["last_due_at"], one["reason"], one["detail"]) for one in found)
    assert told == [
        ("late", at(10), at(20), "missed", ""),
        ("late", at(30), None, "cancelled", "skipped by ann: why"),
        ("p", at(10), at(20), "paused", "paused"),
        ("refused", at(5), None, "refused", "no such queue"),
    ]
    assert not any(one["inside"] for one in found)


def test_quarantined(bench: Bench) -> None:
    one = task()
    with heard(signals.task_quarantined) as found:
        set_task(one, args="nonsense")
        PeriodicTask.objects.filter(pk=one.pk).update(description="x", queue="y")
        bench.tick()
        bench.tick()
    (told,) = found
    assert (told["task"], told["task_id"], told["sender"], told["inside"]) == ("t", one.pk, PeriodicTask, False)
    assert told["reason"].startswith("args: not JSON")
