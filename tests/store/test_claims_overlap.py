"""One run at a time: `overlap = skip`, its limit, and what a crash makes of it."""

from __future__ import annotations

import pytest
from django.core.checks import Tags, run_checks
from django.test import override_settings

from onebeat.core import clock
from onebeat.models import Occurrence
from tests.engine.kit import Bench, at, every, finish, ledger, options, task, why


def test_a_time_is_skipped_while_the_run_before_it_is_open(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, overlap="skip")
    other = task("beside", interval=every(10))
    bench.work(25)
    assert [due_at for name, due_at in bench.take() if name == "t"] == [10]
    assert ledger(one) == [(10, "sent", ""), (20, "skipped", "overlap")]
    assert Occurrence.objects.get(task_id=one.pk, due_at=at(20)).into_at == at(10)
    assert "the run of 2026-03-10 10:00:10 UTC was still open" in why(one, 20).sentence
    finish(one, 10, "started")
    bench.work(10)
    assert ledger(one)[-1] == (30, "skipped", "overlap")
    finish(one, 10, "failed")
    bench.work(10)
    assert ledger(one)[-1] == (40, "sent", "")
    assert [state for _, state, _ in ledger(other)] == ["sent"] * 4


def test_a_run_that_nobody_ends_stands_in_the_way_for_its_limit(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, overlap="skip", overlap_limit_seconds=25)
    bench.work(61)
    assert [due_at for due_at, state, _ in ledger(one) if state == "sent"] == [10, 40]


def test_a_run_that_is_claimed_and_not_sent_is_open(bench: Bench) -> None:
    """Also when the one that claimed it is lost, and another takes it over."""
    one = task(interval=every(10))
    options(one, overlap="skip")
    bench.tick()
    clock.move(at(10))
    bench.die_at("claimed")
    second = Bench(bench.outbox)
    second.work(22)
    assert ledger(one)[1] == (20, "skipped", "overlap")
    second.work(20)
    assert [due_at for _, due_at in bench.sent] == [10]
    assert ledger(one)[0] == (10, "sent", "")


def test_a_run_whose_record_is_gone_stands_in_nobodys_way(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, overlap="skip")
    bench.work(11)
    Occurrence.objects.all().delete()
    bench.work(10)
    assert ledger(one) == [(20, "sent", "")]


@pytest.mark.parametrize("switched_on", [True, False])
def test_without_the_workers_word_it_is_a_mistake(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, switched_on: bool
) -> None:
    options(task("only one", interval=every(10)), overlap="skip")
    with override_settings(ONEBEAT={"worker_signals": switched_on}):
        found = [one for one in run_checks(tags=[Tags.database], databases=["default"]) if one.id == "onebeat.E003"]
    assert bool(found) != switched_on
    assert all("only one" in one.msg for one in found)
