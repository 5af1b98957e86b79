"""Another beat on the same tables: proved by a bait, never by what anybody's code may write."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.core import clock
from onebeat.models import IntervalSchedule, PeriodicTask
from onebeat.models.instants import from_utc, to_utc
from onebeat.store import other_beat
from tests import services
from tests.compat.conftest import make_now
from tests.engine.kit import START, Bench, at, clocked, every, ledger, set_task, task
from tests.processes import run_python
from tests.scratch import Scratch, Templates
from tests.takeover import real

__all__ = ["make_now"]
pytestmark = pytest.mark.django_db(transaction=True)


def passes(bench: Bench, seconds: int) -> None:
    """So many seconds, with a tick every few of them."""
    while seconds > 0:
        bench.advance(min(seconds, 5))
        seconds -= 5


def minute(bench: Bench, tasks: list[PeriodicTask], write: Any) -> None:
    """A minute in which onebeat sends, and somebody writes what they write."""
    passes(bench, 61)
    bench.engine.run_counts.write()
    for one in tasks:
        write(one)


def as_a_beat_does(one: PeriodicTask) -> None:
    """The whole row is saved, with its own time of the run that has just been."""
    now = clock.host_now()
    PeriodicTask.objects.filter(pk=one.pk).update(
        last_run_at=from_utc(now - timedelta(seconds=0.75)), date_changed=from_utc(now)
    )


def bait() -> PeriodicTask | None:
    return PeriodicTask.objects.filter(name=other_beat.CANARY).first()


def three() -> list[PeriodicTask]:
    tasks = [task(f"t{number}", interval=every(61)) for number in range(3)]
    PeriodicTask.objects.update(date_changed=from_utc(START))  # Django asks the real clock
    return tasks


def status() -> str:
    out = io.StringIO()
    call_command("onebeat", "status", stdout=out)
    return out.getvalue()


def warned() -> bool:
    return any(one.id == "onebeat.W003" for one in run_checks(databases=["default"]))


def test_another_beat_is_proved_and_waited_for(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    tasks = three()
    for _ in range(2):
        minute(bench, tasks, as_a_beat_does)
    assert bait() is None and not warned()
    bench.work(3)
    laid = bait()
    assert laid is not None and laid.enabled
    before = len(bench.take())
    assert before == 6
    set_task(laid, enabled=False)  # what django-celery-beat does with it: see below
    bench.work(2)
    assert bait() is None and "sends the same tasks" in caplog.text
    assert "STANDBY: an old django-celery-beat" in status() and warned()
    # While it goes on it is asked again, and nothing is sent here.
    for _ in range(24):
        bench.advance(5)
        if one := bait():
            set_task(one, enabled=False)
    assert bench.take() == [] and "STANDBY" in status()
    # It has sent t0 and t1 meanwhile, is stopped, and writes its run state.
    for one in tasks[:2]:
        as_a_beat_does(one)
    passes(bench, 100)
    assert "STANDBY" not in status() and not warned() and bait() is None
    assert not IntervalSchedule.objects.filter(every=other_beat._EVERY).exists()
    assert ("elsewhere" in {reason for _, _, reason in ledger(tasks[0])}) and "elsewhere" not in str(ledger(tasks[2]))
    sent = [name for name, _ in bench.take()]
    assert sent.count("t2") == sent.count("t0") + 1 == sent.count("t1") + 1


@pytest.mark.parametrize("write", ["one column", "the row", "both schedulers"])
def test_what_users_and_other_schedulers_write_is_no_proof(bench: Bench, write: str) -> None:
    tasks, other = three(), Bench()

    def by_hand(one: PeriodicTask) -> None:
        one.last_run_at = from_utc(clock.host_now() + timedelta(seconds=0.3))
        one.save(update_fields=["last_run_at"] if write == "one column" else None)

    for _ in range(2):
        minute(bench, tasks, by_hand if write != "both schedulers" else lambda one: None)
        if write == "both schedulers":
            clock.move(clock.host_now() + timedelta(seconds=61))
            other.tick()
            other.engine.run_counts.write()
    bench.work(3)
    assert (bait() is not None) == (write == "the row")  # worth a look, and no more
    passes(bench, 70)
    other.engine.close()
    assert bait() is None and "STANDBY" not in status()
    bench.take()
    passes(bench, 65)
    assert {name for name, _ in bench.take()} == {"t0", "t1", "t2"}


def test_a_bait_that_somebody_left_is_taken_away(bench: Bench) -> None:
    left = task(other_beat.CANARY, interval=every(other_beat._EVERY, "days"), one_off=True, total_run_count=1)
    PeriodicTask.objects.filter(pk=left.pk).update(date_changed=from_utc(at(-120)))
    later = Bench()
    later.tick()
    assert bait() is None
    later.engine.close()


def test_the_age_of_a_canary_is_told_by_the_database(bench: Bench) -> None:
    """Another scheduler takes away one that is left: a host whose clock is wrong must not make a new one look old."""
    work = other_beat.OtherBeat("default", other_beat.ForeignWriteDetector())
    work._make_canary(clock.host_now())  # the database's: Django asks the real clock of this host, which is far from it
    found = bait()
    assert found is not None and to_utc(found.date_changed) == clock.host_now()
    work.close()


def test_a_scheduler_in_classic_mode_says_that_it_is_at_work(bench: Bench, make_now: Any) -> None:
    one = task("one", clocked=clocked(at(-1)), enabled=False)
    kind = type("Classic", (DatabaseScheduler,), {"is_due": lambda self, entry: entry.is_due()})
    classic = make_now(kind)
    classic.tick()
    bench.work(3)
    PeriodicTask.objects.filter(pk=one.pk).update(enabled=True)
    bench.work(5)
    assert "STANDBY: a scheduler in classic mode" in status() and bench.take() == []
    classic.close()
    bench.work(5)
    assert "STANDBY" not in status() and [name for name, _ in bench.take()] == ["one"]


def lay() -> None:
    task("not due", interval=every(1, "hours"))
    other_beat.OtherBeat("default", other_beat.ForeignWriteDetector())._make_canary(clock.host_now())
    assert not taken()


def taken() -> bool:
    return not PeriodicTask.objects.get(name=other_beat.CANARY).enabled


def test_the_real_one_takes_the_bait_and_sends_nothing(templates: Templates) -> None:
    kind = next(kind for kind in services.databases() if kind.name == "sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        run_python(scratch.env, lay)
        assert real.real(scratch, real.beat) == []
        assert run_python(scratch.env, taken)
