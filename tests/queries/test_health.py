"""Health names the cause: which figure is wrong, and why nothing is sent."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from onebeat.dispatch.base import Unsent
from onebeat.management.health import _SENTENCES
from onebeat.models import Beat
from onebeat.queries import health as asked
from onebeat.queries.health import health
from onebeat.store import scheduler_rows
from tests.engine.kit import Bench, every, task


def problems() -> list[str]:
    return health("default")["problems"]


def said() -> str:
    with pytest.raises(CommandError) as error:
        call_command("onebeat", "health", stdout=io.StringIO())
    return str(error.value)


def test_a_scheduler_that_can_send_is_healthy(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(3)
    found = health("default")
    assert (found["healthy"], found["able"], found["able_until"]) == (True, 1, None)
    bench.engine.close()
    assert problems() == ["no_scheduler"]
    assert said() == "no scheduler is at work, nothing has been sent since 2026-03-10 10:00:03 UTC"


def test_a_broker_that_does_not_answer(bench: Bench) -> None:
    task(interval=every(1000))
    bench.work(3)
    bench.outbox.unavailable = True
    bench.work(3)
    assert problems() == ["broker_unavailable"]
    assert said().startswith("the broker does not answer, nothing has been sent since 2026-03-10 10:00:0")


def test_a_broker_that_answers_and_accepts_nothing(bench: Bench) -> None:
    task(interval=every(10))
    bench.outbox.answer = lambda message: Unsent("no answer")
    bench.work(60)
    assert "broker_refuses" in problems() and "broker_unavailable" not in problems()
    assert said().startswith("the broker answers and accepts no message")


def test_standby_for_another_beat(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(3)
    row = scheduler_rows.register("default", Beat.Unable.CLASSIC)
    for _ in range(90):
        scheduler_rows.report("default", row, able_since=None, unable_reason=Beat.Unable.CLASSIC, lag=timedelta(0))
        bench.advance(2)
    assert problems() == ["classic", "standby"], "what is due here is not late: the other one sends it"
    assert "stand by because another beat" in said() and "classic mode" in said()


def test_each_problem_has_its_sentence() -> None:
    codes = {asked.NO_SCHEDULER, asked.STARTING, asked.LATE, *Beat.Unable.values}
    assert codes == _SENTENCES.keys()
