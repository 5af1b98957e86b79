"""A task that was disabled for a while does not fire for that while, whoever looked and whenever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from onebeat.core import clock
from onebeat.models import PeriodicTask
from onebeat.models.instants import from_utc
from tests.engine.kit import Bench, at, clocked, due, every, ledger, set_task, task


def by_update(one: PeriodicTask, enabled: bool) -> None:
    PeriodicTask.objects.filter(pk=one.pk).update(enabled=enabled)


def by_save(one: PeriodicTask, enabled: bool) -> None:
    one.enabled = enabled
    one.save(update_fields=["enabled"])


def in_bulk(one: PeriodicTask, enabled: bool) -> None:
    one.enabled = enabled
    PeriodicTask.objects.bulk_update([one], ["enabled"])


def back_past_the_orm(one: PeriodicTask, enabled: bool) -> None:
    if enabled:
        set_task(one, enabled=True)
    else:
        by_save(one, False)


WAYS = pytest.mark.parametrize("switch", [by_update, by_save, in_bulk, back_past_the_orm])


@WAYS
def test_disabled_and_enabled_while_nobody_was_at_work(bench: Bench, switch: Callable[..., None]) -> None:
    one = task(interval=every(10))
    bench.work(1)
    clock.move(at(15))
    switch(one, False)
    clock.move(at(33))
    switch(one, True)
    if switch is not back_past_the_orm:
        PeriodicTask.objects.filter(pk=one.pk).update(queue="elsewhere")
    bench.tick()
    assert (bench.sent, due(one)) == ([], 40)
    assert ledger(one) == [(10, "skipped", "disabled")]
    bench.work(8)
    assert bench.sent == [("t", 40)]


def test_a_save_that_disables_nothing_moves_nothing(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(1)
    clock.move(at(12))
    one.description = "a note"
    one.queue = "elsewhere"
    one.save()
    bench.tick()
    assert bench.sent == [("t", 10)]


def test_made_disabled_and_enabled_later_it_begins_then(bench: Bench) -> None:
    one = task(interval=every(10), enabled=False)
    clock.move(at(25))
    by_save(one, True)
    bench.tick()
    assert due(one) == 30


def test_a_new_clocked_time_counts_however_often_the_task_was_switched(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.work(6)
    bench.engine.run_counts.write()
    one.refresh_from_db()
    one.enabled = False
    one.save()
    one.clocked, one.enabled = clocked(at(4)), True
    one.save()
    bench.work(2)
    assert bench.sent == [("t", 5), ("t", 4)]


def test_an_end_and_a_start_hold_for_one_that_is_enabled_again(bench: Bench) -> None:
    one = task(interval=every(10), expires=from_utc(at(30)))
    bench.work(1)
    by_save(one, False)
    clock.move(at(31))
    by_save(one, True)
    bench.tick()
    assert (bench.sent, due(one)) == ([], None)
