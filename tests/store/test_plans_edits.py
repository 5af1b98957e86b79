"""What a change moves, and what it leaves alone. An edit plans the first match after it: nothing fires for the past."""

from __future__ import annotations

import pytest

from onebeat.models import PeriodicTask, TaskState
from onebeat.models.instants import from_utc
from tests.engine.kit import Bench, at, clocked, cron, due, every, ledger, options, set_task, sql, sweep, task

HOUR = 3600


def test_another_schedule_counts_from_the_edit(bench: Bench) -> None:
    one = task(crontab=cron("30", "13"))
    bench.advance(3.5 * HOUR)
    assert bench.take() == [("t", 3.5 * HOUR)]
    bench.advance(22.8 * HOUR)  # 12:18 the next day
    one.refresh_from_db()
    one.crontab = cron("0", "16")
    one.save()
    bench.work(3)
    assert bench.take() == []
    assert due(one) == 30 * HOUR
    bench.advance(30 * HOUR - 26.3 * HOUR - 3)
    assert bench.take() == [("t", 30 * HOUR)]


def test_an_edit_of_the_shared_schedule_moves_every_task_on_it(bench: Bench) -> None:
    shared = every(60)
    made = [task(name, interval=shared) for name in "ab"]
    bench.advance(10)
    shared.every = 30
    shared.save()
    bench.advance(0)
    # The grid stands where it stood, at the creation.
    assert [due(one) for one in made] == [30, 30]
    type(shared).objects.filter(pk=shared.pk).update(every=20)
    bench.advance(15)
    assert sorted(bench.sent) == [("a", 20), ("b", 20)]


def test_a_save_that_changes_no_schedule_moves_nothing(bench: Bench) -> None:
    one = task(interval=every(7 * 24, "hours"))
    bench.tick()
    for day in range(1, 7):
        bench.advance(24 * HOUR)
        one.description = f"day {day}"
        one.args = f"[{day}]"
        one.save()
        bench.tick()
        assert due(one) == 7 * 24 * HOUR
    bench.advance(24 * HOUR)
    assert bench.sent == [("t", 7 * 24 * HOUR)]


def test_the_grid_stands_through_misses_and_late_runs(bench: Bench) -> None:
    one = task(interval=every(1, "hours"), start_time=from_utc(at(1800)))
    bench.advance(1800)
    bench.outbox.unavailable = True
    bench.advance(HOUR)
    assert bench.take() == [("t", 1800)]
    bench.advance(17 * 60)
    bench.outbox.unavailable = False
    bench.advance(1)
    assert bench.take() == [("t", 1800 + HOUR)]
    assert due(one) == 1800 + 2 * HOUR


def test_a_save_of_an_overdue_task_does_not_lose_its_turn(bench: Bench) -> None:
    one = task(interval=every(60))
    bench.tick()
    bench.outbox.unavailable = True
    bench.advance(61)
    one.description = "edited while the broker is away"
    one.save()
    bench.advance(5)
    bench.outbox.unavailable = False
    bench.tick()
    assert bench.sent == [("t", 60)]


def test_enabling_fires_nothing_for_the_past(bench: Bench) -> None:
    one = task(interval=every(60), enabled=False)
    bench.advance(200)
    assert (bench.sent, due(one)) == ([], None)
    one.enabled = True
    one.save()
    bench.tick()
    assert (bench.sent, due(one)) == ([], 240)
    bench.advance(40)
    assert bench.sent == [("t", 240)]


def test_a_task_disabled_while_it_is_overdue_is_not_sent_and_the_ledger_says_why(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.tick()
    bench.outbox.unavailable = True
    bench.advance(35)
    PeriodicTask.objects.filter(pk=one.pk).update(enabled=False)
    bench.outbox.unavailable = False
    bench.work(20)
    assert bench.sent == []
    assert ledger(one) == [(10, "skipped", "disabled")]


def test_an_edit_of_an_overdue_task_drops_its_old_times_and_the_ledger_says_why(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.tick()
    bench.outbox.unavailable = True
    bench.advance(35)
    one.interval = every(7)
    one.save()
    bench.outbox.unavailable = False
    bench.advance(5)
    assert bench.sent == []
    assert ledger(one) == [(10, "skipped", "edited")]
    bench.advance(2)
    assert bench.sent == [("t", 42)]


def test_a_nominal_time_between_the_edit_and_the_look_at_it_is_kept(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.advance(9)
    one.interval = every(5)  # its grid has 10 as well
    one.save()
    bench.advance(1.5)
    assert bench.sent == [("t", 10)]
    assert ledger(one) == [(10, "sent", "")]


def test_an_old_time_that_the_new_schedule_has_too_is_not_blocked_by_its_record(bench: Bench) -> None:
    one = task(crontab=cron("0", "11"))
    bench.tick()
    bench.outbox.unavailable = True
    bench.advance(HOUR - 5)
    one.crontab = cron("0", "*")
    one.save()
    bench.advance(7)
    bench.outbox.unavailable = False
    bench.tick()
    assert bench.sent == [("t", HOUR)]


def test_an_old_time_that_comes_second_in_the_new_schedule_is_not_blocked_either(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.advance(4)
    one.interval = every(5)
    one.save()
    bench.advance(6.5)
    assert bench.sent == [("t", 5), ("t", 10)]
    assert ledger(one) == [(5, "sent", ""), (10, "sent", "")]


def test_the_water_mark_never_falls(bench: Bench) -> None:
    one = task(interval=every(10))
    options(one, jitter_seconds=0)
    bench.work(10)
    sql("UPDATE onebeat_taskoptions SET jitter_seconds = 9")  # planned to leave at 20; held back when its turn comes
    bench.work(10)
    state = TaskState.objects.get(pk=one.pk)
    assert (state.due_at, state.water_mark) == (at(20), at(10))
    bench.work(9)
    assert bench.sent == [("t", 10), ("t", 20)]


@pytest.mark.parametrize("seen_by", ["claim", "sweep"])
def test_a_change_seen_before_its_hint_is_planned_from_the_hint(bench: Bench, seen_by: str) -> None:
    """The engine may meet the data first. Planned from that later instant, the time between would be lost."""
    one = task(interval=every(10))
    bench.advance(9.8)
    engine = bench.engine
    planning, engine._plan = engine._plan, lambda: None  # type: ignore[method-assign]
    one.interval = every(5)
    one.save()
    new = task("new", interval=every(1), start_time=from_utc(at(9)))
    bench.advance(0.5)
    if seen_by == "sweep":
        sweep()
        assert due(new) == 10
    bench.tick()
    engine._plan = planning  # type: ignore[method-assign]
    bench.tick()
    assert sorted(bench.sent) == [("new", 10), ("t", 10)]


def test_a_finished_one_off_that_was_edited_meanwhile_keeps_the_edit(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    bench.advance(5)
    assert bench.take() == [("t", 5)]
    one.clocked = clocked(at(20))
    one.save()
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert (one.enabled, one.clocked.clocked_time) == (True, from_utc(at(20)))  # type: ignore[union-attr]
    bench.work(20)
    assert bench.take() == [("t", 20)]
    bench.engine.run_counts.write()
    one.refresh_from_db()
    assert (one.enabled, one.total_run_count) == (False, 2)


def test_a_finished_one_off_that_was_edited_past_the_orm_keeps_the_edit(bench: Bench) -> None:
    one = task(clocked=clocked(at(5)))
    later = clocked(at(20))
    bench.advance(5)
    set_task(one, clocked_id=later.pk)
    bench.engine.run_counts.write()
    sweep()
    bench.work(20)
    assert bench.sent == [("t", 5), ("t", 20)]


def test_a_finished_one_off_that_is_enabled_again_runs_again(bench: Bench) -> None:
    one = task(one_off=True, interval=every(10))
    bench.work(11)
    bench.engine.run_counts.write()
    sweep()
    one.refresh_from_db()
    assert not one.enabled
    one.enabled = True
    one.save()
    bench.work(30)
    assert bench.sent == [("t", 10), ("t", 20)]


@pytest.mark.parametrize("target", [20, 3, -40], ids=["ahead", "passed", "before the last run"])
def test_a_clocked_task_that_is_moved_runs_at_the_new_time(bench: Bench, target: int) -> None:
    """However late: the clock of whoever moved it may be behind, and it is their wish that it runs."""
    one = task(clocked=clocked(at(5)))
    bench.advance(5)
    bench.engine.run_counts.write()
    bench.advance(1)
    one.refresh_from_db()
    one.clocked = clocked(at(target))
    one.enabled = True
    one.save()
    bench.work(16)
    assert bench.sent == [("t", 5), ("t", target)]
    one.enabled = True
    one.save()
    bench.work(5)
    assert bench.sent == [("t", 5), ("t", target)]


def test_a_move_of_the_shared_clocked_row_runs_at_the_new_time(bench: Bench) -> None:
    shared = clocked(at(5))
    task("a", clocked=shared)
    task("b", clocked=shared)
    bench.tick()
    shared.clocked_time = from_utc(at(9))
    shared.save()
    bench.work(8)
    assert bench.sent == []
    bench.work(2)
    assert sorted(bench.sent) == [("a", 9), ("b", 9)]


def test_another_kind_of_schedule(bench: Bench) -> None:
    one = task(interval=every(60))
    bench.advance(60)
    one.refresh_from_db()
    one.interval, one.clocked, one.one_off = None, clocked(at(90)), True
    one.save()
    bench.advance(30)
    one.clocked, one.crontab, one.one_off = None, cron("*"), False
    one.save()
    bench.advance(30)
    assert bench.sent == [("t", 60), ("t", 90), ("t", 120)]


def test_a_deleted_task_leaves_no_state(bench: Bench) -> None:
    kept, gone, past = task("kept"), task("gone"), task("past")
    bench.tick()
    gone.delete()
    sql("DELETE FROM django_celery_beat_periodictask WHERE id = %s", past.pk)
    bench.advance(60)
    assert bench.sent == [("kept", 60)]
    sweep()
    assert list(TaskState.objects.values_list("pk", flat=True)) == [kept.pk]


def test_a_schedule_edited_past_the_orm_a_moment_before_the_claim_decides(bench: Bench) -> None:
    one = task(interval=every(60))
    other = every(45)
    bench.advance(59.9)
    set_task(one, interval_id=other.pk)
    bench.advance(0.2)
    assert bench.sent == []
    assert ledger(one) == [(60, "skipped", "edited")]
    bench.advance(29.9)
    assert bench.sent == [("t", 90)]


def test_a_task_disabled_past_the_orm_a_moment_before_the_claim_is_not_sent(bench: Bench) -> None:
    one = task(interval=every(60))
    bench.advance(59.9)
    set_task(one, enabled=False)
    bench.advance(0.2)
    assert bench.sent == []
    assert ledger(one) == [(60, "skipped", "disabled")]


def test_options_count_at_once_and_move_no_time(bench: Bench) -> None:
    one = task(interval=every(60))
    bench.advance(50)
    options(one, grace_seconds=5)
    bench.tick()
    assert due(one) == 60
    bench.advance(10)
    assert bench.sent == [("t", 60)]
