"""What is old goes, bit by bit and by one scheduler at a time; what has been sent stays sent."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

import onebeat
from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.db import database_clock
from onebeat.engine.housekeeping import Housekeeping
from onebeat.models import (
    Action,
    Beat,
    CeleryReading,
    ClockedSchedule,
    Declared,
    Lease,
    Occurrence,
    Outage,
    PeriodicTask,
    TaskOptions,
    TaskState,
)
from onebeat.store import global_pause, leases, occurrences, retention
from tests.engine.kit import START, Bench, at, clocked, every, options, task, why
from tests.engine.kit import ledger as records

DAY = 86_400.0
SETTINGS = Settings(sweep_size=0)


def prune_all(size: int = 1000) -> dict[str, int]:
    keep = retention.Keep.of(SETTINGS, database_clock.now("default"))
    *_, sums = retention.whole("default", keep, size)
    return sums


def command(*args: str) -> dict[str, object]:
    out = StringIO()
    call_command("onebeat", *args, "--json", stdout=out)
    found: dict[str, object] = json.loads(out.getvalue())
    return found


def test_what_was_sent_goes_first_and_what_was_not_later(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(35)
    options(one, paused=True)
    bench.work(20)
    Occurrence.objects.filter(due_at=at(10)).update(state="succeeded")
    Occurrence.objects.filter(due_at=at(20)).update(state="failed")
    assert [due_at for due_at, *_ in records(one)] == [10, 20, 30, 40, 50]
    clock.move(at(7 * DAY + 20))
    assert prune_all(size=2)["occurrences"] == 1
    clock.move(at(8 * DAY))
    assert prune_all(size=2)["occurrences"] == 1
    assert [state for _, state, _ in records(one)] == ["failed", "skipped", "skipped"]
    assert why(one, 10).kind == "pruned"
    clock.move(at(31 * DAY))
    assert prune_all(size=2)["occurrences"] == 3


def test_what_is_not_settled_and_what_is_to_come_stay(bench: Bench) -> None:
    """However old the record is: a claim is still to be sent, and a time that somebody called off is still ahead."""
    one = task(interval=every(10))
    bench.work(1)
    clock.move(at(10))
    bench.die_at("claimed")
    row = {"task_name": "t", "celery_task_id": occurrences.namespace("default"), "decided_at": START}
    ahead = at(90 * DAY)
    Occurrence.objects.create(task=one, due_at=ahead, state="skipped", reason="cancelled", **row)
    Occurrence.objects.create(task=one, due_at=at(1), last_due_at=ahead, state="skipped", reason="paused", **row)
    clock.move(at(60 * DAY))
    assert prune_all()["occurrences"] == 0
    assert Occurrence.objects.count() == 3


def test_what_was_sent_and_pruned_is_not_sent_again(bench: Bench) -> None:
    """Each way in which a time can come up again: by hand, by another clocked time and back, by a new plan."""
    one, two = task("clocked", clocked=clocked(at(5))), task("every", interval=every(10))
    bench.work(12)
    assert sorted(bench.take()) == [("clocked", 5), ("every", 10)]
    one.clocked = clocked(at(20))
    one.enabled = True
    one.save()
    bench.work(10)
    two.enabled = False
    two.save()
    assert sorted(bench.take()) == [("clocked", 20), ("every", 20)]
    bench.engine.run_counts.write()
    clock.move(at(9 * DAY))
    bench.tick()
    prune_all()
    assert not Occurrence.objects.filter(state="sent").exists()
    one.refresh_from_db()
    for instant in (5, 20, 5):
        one.clocked, one.enabled = clocked(at(instant)), True
        one.save()
        bench.work(2)
    TaskState.objects.filter(pk=two.pk).update(due_at=at(10), wake_at=database_clock.now("default"))
    two.enabled = True
    two.save()
    bench.work(3)
    assert bench.take() == []
    assert (5, "skipped", "pruned") in records(one)
    one.clocked, one.enabled = clocked(at(8.5 * DAY)), True
    one.save()
    bench.work(2)
    assert ("clocked", 8.5 * DAY) in bench.take(), "one that has not been is sent, however late"


def test_a_scheduler_prunes_beside_its_ticks(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(45)
    bench.engine.close()
    term = Lease.objects.get().term
    clock.move(at(8 * DAY))
    other = Bench(bench.outbox, keep_days=7)
    other.tick()
    assert not Occurrence.objects.filter(state="sent", due_at__lt=at(DAY)).exists()
    assert (Lease.objects.get().term, Lease.objects.get().place) == (term + 1, 0)
    other.engine.close()


def test_finished_one_offs_of_once_go_and_those_that_people_made_stay(bench: Bench) -> None:
    made = {name: task(name, clocked=clocked(at(5))) for name in ("once", "by hand", "to come", "running")}
    options(made["once"], origin="once")
    options(made["by hand"])
    bench.work(7)
    bench.engine.run_counts.write()
    for name in ("to come", "running"):
        options(made[name], origin="once")
    PeriodicTask.objects.filter(name="to come").update(clocked=clocked(at(90 * DAY)), enabled=True)
    PeriodicTask.objects.filter(name="running").update(enabled=True)
    alone = task("alone", clocked=clocked(at(6)))
    options(alone, origin="once")
    bench.work(2)
    bench.engine.run_counts.write()
    clock.move(at(8 * DAY))
    assert prune_all()["tasks"] == 2
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"by hand", "to come", "running"}
    assert not TaskState.objects.filter(pk__in=[made["once"].pk, alone.pk]).exists()
    assert set(ClockedSchedule.objects.values_list("clocked_time", flat=True)) == {at(5), at(90 * DAY)}


def test_rows_of_schedulers_long_gone_and_old_outages_go(bench: Bench) -> None:
    bench.engine.close()
    for days in (10, 40, 57):
        clock.move(at(days * DAY))
        other = Bench(bench.outbox)
        other.tick()
        other.engine.close()
    # Each of them has deleted the rows of those before it, and kept the outages: its settings keep all for ever.
    assert (Beat.objects.count(), Outage.objects.count()) == (1, 3)
    clock.move(at(60 * DAY))
    assert prune_all()["outages"] == 1
    assert [one.ended_at for one in Outage.objects.order_by("ended_at")] == [at(40 * DAY), at(57 * DAY)]
    clock.move(at(90 * DAY))
    assert prune_all()["schedulers"] == 0, "the newest stays: where the next outage begins is in it"


def test_one_at_a_time_and_a_new_term_each_time_it_changes_hands(bench: Bench) -> None:
    span = timedelta(seconds=10)
    first = leases.take("default", "x", 1, span)
    assert first == 1
    assert leases.take("default", "x", 2, span) is None
    clock.move(at(9))
    assert leases.renew("default", "x", first, span)
    clock.move(at(18))
    assert leases.take("default", "x", 2, span) is None
    clock.move(at(19))
    second = leases.take("default", "x", 2, span)
    assert second == 2
    assert not leases.renew("default", "x", first, span), "it ended, whatever its holder believes"
    assert not leases.move("default", "x", first, 99)
    leases.release("default", "x", first)
    assert leases.take("default", "x", 3, span) is None, "only its holder can let it go"
    leases.release("default", "x", second)
    assert leases.take("default", "x", 3, span) == 3


def test_the_sweep_is_one_schedulers_at_a_time(bench: Bench) -> None:
    settings = Settings(sweep_size=1000)
    first, second = Housekeeping("default", settings), Housekeeping("default", settings)
    bench.engine.close()
    first.step(1, 0.0)
    PeriodicTask._base_manager.bulk_create([PeriodicTask(name="past the ORM", task="t", interval=every(60))])
    second.step(2, 0.0)
    assert not TaskState.objects.exists()
    first.close()
    Housekeeping("default", settings).step(3, 0.0)
    assert TaskState.objects.exists()


def test_a_global_pause_ends_when_it_says_or_when_somebody_ends_it(bench: Bench) -> None:
    one, two = task("a", interval=every(10)), task("b", interval=every(10))
    global_pause.pause_all("default", by="bob", until=at(25))
    bench.work(31)
    assert {records(each)[0] for each in (one, two)} == {(10, "skipped", "paused")}
    assert sorted(bench.take()) == [("a", 30), ("b", 30)]
    global_pause.pause_all("default")
    bench.work(10)
    assert global_pause.resume_all("default")
    assert not global_pause.resume_all("default")
    bench.work(10)
    assert sorted(bench.take()) == [("a", 50), ("b", 50)]


def test_what_was_claimed_before_a_global_pause_is_not_sent_in_it(bench: Bench) -> None:
    one = task(interval=every(10))
    bench.work(1)
    clock.move(at(10))
    bench.die_at("claimed")
    global_pause.pause_all("default", by="bob")
    clock.move(at(60))
    Bench(bench.outbox).tick()
    assert bench.sent == []
    assert Occurrence.objects.get(task_id=one.pk, due_at=at(10)).detail == "everything is paused by bob"


def test_the_commands(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(12)
    assert command("health")["healthy"] is True
    with override_settings(ONEBEAT={"keep_days": 7}):
        clock.move(at(8 * DAY))
        counted = command("prune", "--dry-run")
        assert (counted["dry_run"], counted["occurrences"]) == (True, 1)
        assert Occurrence.objects.count() == 1
        assert command("prune")["occurrences"] == 1
        assert Occurrence.objects.count() == 0
    with pytest.raises(CommandError, match=r"no scheduler is at work, nothing has been sent since .* late") as error:
        call_command("onebeat", "health", stdout=StringIO())
    assert error.value.returncode == 1
    before = occurrences.namespace("default")
    assert command("check")["namespace"] == str(before)
    renewed = command("check", "--renew-namespace")["namespace"]
    assert renewed == str(occurrences.namespace("default")) != str(before)
    bench.work(1)
    bench.advance(10)
    assert len({message.id for message in bench.outbox.messages}) == len(bench.outbox.messages)


def test_health_says_whether_it_is_the_broker(bench: Bench) -> None:
    bench.outbox.unavailable = True
    bench.work(3)
    with pytest.raises(CommandError, match="the broker does not answer") as error:
        call_command("onebeat", "health", stdout=StringIO())
    assert error.value.returncode == 1


def test_a_follow_up_that_was_cancelled_before_its_time_goes_with_all_that_belongs_to_it(bench: Bench) -> None:
    onebeat.once("soon", at=at(60), task="t", tags=["x"])
    onebeat.once("far", at=at(1000 * DAY), task="t")
    onebeat.once("waits", at=at(1000 * DAY), task="t")
    bench.work(1)
    assert onebeat.cancel("soon") and onebeat.cancel("far")
    bench.work(2)
    assert prune_all()["tasks"] == 0, "the key stays taken for a while"
    clock.move(at(8 * DAY))
    assert prune_all()["tasks"] == 2
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"waits"}
    assert set(TaskState.objects.values_list("task_name", flat=True)) == {"waits"}
    assert TaskOptions.objects.count() == 1


def test_every_other_table_has_a_bound_too(bench: Bench) -> None:
    one = task("goes")
    onebeat.pause("goes")
    Declared.objects.create(name="goes", task=one.pk, source="schedules", removed_at=at(1))
    CeleryReading.objects.create(crontab=10**6, text="x", why="gone")
    Outage.objects.create(kind="down", began_at=at(0), ended_at=at(1))
    PeriodicTask.objects.filter(pk=one.pk).delete()
    clock.move(at(31 * DAY))
    sums = prune_all()
    assert {name: sums[name] for name in ("outages", "actions", "declarations", "readings")} == {
        "outages": 1,
        "actions": 1,
        "declarations": 1,
        "readings": 1,
    }
    assert not Action.objects.exists()


def test_rows_beside_the_ledger_go_in_as_many_pieces_as_they_need(bench: Bench) -> None:
    old = at(-400 * DAY)
    Action.objects.bulk_create([Action(verb="pause", at=old) for _ in range(1500)])
    bench.engine.close()
    housekeeping = Housekeeping("default", SETTINGS)
    for _ in range(3):
        housekeeping.step(1, 1.0)
    assert not Action.objects.exists()
