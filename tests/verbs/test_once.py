"""One task under one key: made once, moved, cancelled, and gone with the row it belongs to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

import onebeat
from onebeat.core import clock
from onebeat.models import (
    Action,
    Change,
    ClockedSchedule,
    Occurrence,
    PeriodicTask,
    TaskOptions,
    TaskState,
    change_hints,
)
from onebeat.models.instants import to_utc
from onebeat.store import definitions, task_states
from tests.engine.kit import Bench, at, ledger, options, sweep, task
from tests.project.tasks import add

TASK = "tests.engine.add"


def ask(key: str = "k", seconds: float = 10, **more: Any) -> onebeat.Once:
    return onebeat.once(key, **{"at": at(seconds), "task": TASK, **more})


def again(key: str = "k") -> str:
    return ask(key).state


def test_it_runs_once_and_the_key_stays_taken(bench: Bench) -> None:
    first = onebeat.once("k", at=timedelta(seconds=10), task=add, args=(1,), kwargs={"y": 2})
    assert (first.created, first.rescheduled, first.state, first.at, first.key) == (True, False, "waiting", at(10), "k")
    second = ask(seconds=5)
    assert (second.created, second.state, second.at, second.task) == (False, "waiting", at(10), first.task)
    bench.work(12)
    (message,) = bench.outbox.messages
    assert (message.task, message.args, message.kwargs) == ("tests.project.tasks.add", [1], {"y": 2})
    bench.engine.run_counts.write()
    assert not PeriodicTask.objects.get().enabled
    third = ask(seconds=30, if_exists="reschedule")
    assert (third.created, third.rescheduled, third.state, third.at) == (False, False, "sent", at(10))
    with pytest.raises(onebeat.KeyTaken, match="key: 'k' is taken by a task that is sent"):
        ask(if_exists="fail")
    Occurrence.objects.all().delete()
    assert again() == "finished"
    bench.work(30)
    assert len(bench.sent) == 1
    assert ClockedSchedule.objects.count() == 1


def test_nothing_is_sent_and_the_key_is_free_after_a_rollback(bench: Bench) -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        assert ask(seconds=0).created
        raise RuntimeError
    bench.work(2)
    assert (bench.sent, ClockedSchedule.objects.count(), TaskState.objects.count()) == ([], 0, 0)
    with transaction.atomic():
        assert ask(seconds=3).created
        with pytest.raises(onebeat.KeyTaken):
            ask(if_exists="fail")
        assert ask("other", 4).created  # the error has left the transaction as it was
    bench.work(3)
    assert bench.sent == [("k", 3), ("other", 4)]


def test_moving(bench: Bench) -> None:
    made = ask()
    moved = ask(seconds=20, if_exists="reschedule", by="ann")
    assert (moved.created, moved.rescheduled, moved.at, moved.state) == (False, True, at(20), "waiting")
    assert not ask(seconds=20, if_exists="reschedule").rescheduled
    bench.work(12)
    assert ask(seconds=15, if_exists="reschedule").rescheduled
    bench.work(10)
    assert bench.sent == [("k", 15)]
    assert not ask(seconds=40, if_exists="reschedule").rescheduled
    bench.work(30)
    assert ledger(made.task) == [(15, "sent", "")]
    assert Action.objects.order_by("pk").values_list("verb", "by", "detail")[0] == (
        "reschedule",
        "ann",
        f"from {at(10).isoformat()} to {at(20).isoformat()}",
    )


def test_a_move_after_the_claim_says_that_it_is_too_late(bench: Bench) -> None:
    ask()
    bench.work(9)
    clock.move(at(10))
    bench.die_at("claimed")
    late = ask(seconds=50, if_exists="reschedule")
    assert (late.rescheduled, late.state, late.at) == (False, "claimed", at(10))
    assert not onebeat.cancel("k")
    other = Bench(bench.outbox)
    other.advance(40)
    assert other.sent == [("k", 10)]
    assert again() == "sent"


def test_cancelling_and_asking_anew(bench: Bench) -> None:
    made = ask()
    bench.work(5)
    assert onebeat.cancel("k", "customer paid", by="ann")
    assert onebeat.cancel("k")
    assert again() == "cancelled"
    bench.work(10)
    assert bench.sent == []
    assert ledger(made.task) == [(10, "skipped", "cancelled")]
    assert Occurrence.objects.get().detail == "cancelled by ann: customer paid"
    assert Action.objects.filter(verb="cancel").count() == 1
    late = ask(seconds=30, if_exists="reschedule")
    assert (late.created, late.rescheduled, late.state) == (False, False, "cancelled")
    assert ask(seconds=30, if_exists="renew").rescheduled
    assert onebeat.cancel("k")
    assert ask(seconds=30, if_exists="renew").rescheduled  # the instant that was taken back
    bench.work(16)
    assert bench.sent == [("k", 30)]
    assert not onebeat.cancel("k")
    assert not onebeat.cancel("nobody")


def test_a_cancelled_key_stays_so_and_says_it(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    ask()
    onebeat.cancel("k")
    again_asked = ask(seconds=20)
    assert (again_asked.created, again_asked.state) == (False, "cancelled")
    assert "its run was cancelled" in caplog.text
    renewed = ask(seconds=20, if_exists="renew")
    assert (renewed.created, renewed.rescheduled, renewed.state, renewed.at) == (False, True, "waiting", at(20))
    assert ask(seconds=25, if_exists="renew").at == at(25)
    bench.work(30)
    assert bench.sent == [("k", 25)]
    assert not ask(seconds=60, if_exists="renew").rescheduled


#: What the collations of MySQL and MariaDB take for one name.
ALIKE = ["Report", "report", "R\u00e9port", "Re\u0301port", "Report ", "REPORT"]


def test_a_key_means_its_bytes(bench: Bench) -> None:
    made = [ask(key, 10 + number, args=[number]) for number, key in enumerate(ALIKE)]
    assert [one.created for one in made] == [True] * len(ALIKE)
    assert [one.key for one in made] == ALIKE
    found = onebeat.once_many([{"key": key, "at": at(50), "task": TASK} for key in reversed(ALIKE)])
    assert [(one.created, one.task.pk, one.key) for one in found] == [
        (False, one.task.pk, one.key) for one in reversed(made)
    ]
    assert onebeat.cancel("REPORT")
    assert not onebeat.cancel("repor\u0074 ")
    assert ask("Report").state == "waiting"
    assert onebeat.pause("report") == 1
    with pytest.raises(onebeat.UnknownTask):
        onebeat.pause("rEport")
    bench.tick()
    assert onebeat.explain("R\u00e9port", at(12)).kind == "waiting"
    onebeat.run_now("Report ")
    bench.work(20)
    assert sorted(message.args[0] for message in bench.outbox.messages) == [0, 2, 3, 4, 4]


def test_many_keys_that_a_database_takes_for_one(bench: Bench) -> None:
    items: list[onebeat.OnceItem] = [
        {"key": key, "at": at(n), "task": TASK, "args": [n]} for n, key in enumerate(["A1", "a1", "\u00c11", "a1"])
    ]
    answers = onebeat.once_many(items)
    assert [one.created for one in answers] == [True, True, True, False]
    assert answers[3].task.pk == answers[1].task.pk
    bench.work(5)
    assert sorted(message.args[0] for message in bench.outbox.messages) == [0, 1, 2]


def test_a_recurring_task_is_no_key(bench: Bench) -> None:
    task("t")
    for call in (lambda: ask("t"), lambda: ask("t", if_exists="reschedule"), lambda: onebeat.cancel("t")):
        with pytest.raises(ValueError, match="key: 't' does not run once at an instant"):
            call()


def test_what_a_pause_has_skipped_can_be_moved(bench: Bench) -> None:
    made = ask()
    options(made.task, paused=True)
    bench.work(12)
    assert again() == "skipped"
    assert not ask(if_exists="reschedule").rescheduled
    options(made.task, paused=False)
    assert ask(seconds=20, if_exists="reschedule").rescheduled
    bench.work(10)
    assert bench.sent == [("k", 20)]


def test_options_travel_with_the_message(bench: Bench) -> None:
    made = ask(
        queue="slow",
        priority=3,
        headers={"tenant": "a"},
        expires=timedelta(seconds=1.5),
        time_limit=60,
        ignore_result=True,
        link=add.s(1, 2),
        tags=["mail", "night"],
    )
    bench.work(10)
    sent = bench.outbox.messages[0].options
    assert (sent["queue"], sent["priority"], sent["headers"]["tenant"]) == ("slow", 3, "a")
    assert (sent["time_limit"], sent["ignore_result"], sent["expires"]) == (60, True, at(12))
    assert sent["link"]["task"] == "tests.project.tasks.add"
    row = TaskOptions.objects.get(pk=made.task.pk)
    assert (row.origin, row.tags, row.link) == ("once", "mail,night", "")
    assert ask("ends", expires=at(60)).task.expires is not None
    with pytest.raises(ValueError, match=r"expires: .*10:00:05.* is before the run of 'ended' at .*10:00:10"):
        ask("ended", expires=at(5))


def test_broken_extra_options_are_quarantined_by_name(bench: Bench) -> None:
    made = ask()
    TaskOptions._base_manager.filter(pk=made.task.pk).update(extra="[1]")
    change_hints.changed("default", "task", [made.task.pk])
    bench.tick()
    assert TaskState.objects.get().quarantine.startswith("extra: must be a JSON object")
    assert again() == "quarantined"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kwargs": {"order": {"items": [1, 2, Decimal("1.5")]}}},
         'kwargs["order"]["items"][2]: JSON cannot hold the Decimal Decimal(\'1.5\'): pass str(...) of it'),
        ({"args": [datetime(2026, 1, 1, tzinfo=UTC)]}, "args[0]: JSON cannot hold the datetime"),
        ({"kwargs": {"a": {1: 2}}}, 'kwargs["a"][1]: a key must be text, not int'),
        ({"args": [float("nan")]}, "args[0]: nan is no JSON number"),
        ({"args": "abc"}, "args: a list or tuple of arguments is needed, not str"),
        ({"args": [Group(name="x")]}, "pass its pk, and read the row in the task"),
        ({"eta": 5}, "eta: this option of a message is not accepted: `at` says when"),
        ({"headers": {"id": "1", "periodic_task_name": "a"}}, "headers: Celery or onebeat sets id, periodic_task_name"),
        ({"colour": 5}, "colour: this option of a message is not accepted: accepted are argsrepr, compression,"),
        ({"priority": 300}, "priority: a whole number from 0 to 255 is needed, not 300"),
        ({"expires": -1}, "expires: a number of seconds above zero is needed, not -1"),
        ({"at": datetime(2026, 1, 1)}, "at: 2026-01-01T00:00:00 has no time zone"),  # noqa: DTZ001
        ({"at": 5}, "at: an aware datetime or a timedelta from now is needed, not int"),
        ({"task": 5}, "task: a Celery task or its registered name is needed, not 5"),
        ({"key": ""}, "key: a text of 1 to 200 characters is needed, not ''"),
        ({"if_exists": "replace"}, 'if_exists: "keep", "reschedule", "renew" or "fail" is needed'),
        ({"tags": "mail"}, "tags: a list of words without commas is needed"),
        ({"for_": Group(pk=1)}, "for_: Group is not linked; put @onebeat.linked above"),
    ],
)  # fmt: skip
def test_bad_input_is_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises((ValueError, TypeError)) as found:
        onebeat.once(**{"key": "k", "at": at(0), "task": TASK, **given})
    assert text in str(found.value)


def test_many(bench: Bench) -> None:
    ask("b", 3)
    items: list[onebeat.OnceItem] = [
        {"key": key, "at": at(n), "task": add, "args": [n], "queue": "q"} for n, key in enumerate("abca")
    ]
    answers = onebeat.once_many(items, if_exists="reschedule")
    assert [(one.key, one.created, one.rescheduled, one.at) for one in answers] == [
        ("a", True, False, at(0)),
        ("b", False, True, at(1)),
        ("c", True, False, at(2)),
        ("a", False, True, at(3)),
    ]
    bench.work(4)
    assert bench.sent == [("b", 1), ("c", 2), ("a", 3)]
    assert [one.state for one in onebeat.once_many(items)] == ["sent"] * 4
    with pytest.raises(TypeError, match=r"items\[1\]: task is missing"):
        onebeat.once_many([items[0], {"key": "x", "at": at(1)}])  # type: ignore[typeddict-item]
    with pytest.raises(ValueError, match=r"items\[0\]: args\[0\]: JSON cannot hold"):
        onebeat.once_many([{"key": "x", "at": at(1), "task": add, "args": [object()]}])
    with pytest.raises(onebeat.KeyTaken), transaction.atomic():
        onebeat.once_many([{"key": "y", "at": at(1), "task": add}, items[0]], if_exists="fail")
    assert not PeriodicTask.objects.filter(name__in="xy").exists()


def test_the_sweep_and_the_hint_find_the_same_plan(bench: Bench) -> None:
    made = ask()
    bench.tick()
    planned = TaskState.objects.values().get()
    sweep()
    bench.tick()
    assert TaskState.objects.values().get() == planned
    assert to_utc(made.task.clocked.clocked_time) == at(10)


def test_it_is_planned_where_it_is_made(bench: Bench) -> None:
    """Its plan is the one that a scheduler would make; a transaction of its own leaves no hint where it is known so."""
    made = ask(expires=at(60))
    state = TaskState.objects.get(pk=made.task.pk)
    assert (state.due_at, state.wake_at, state.clocked) == (at(10), at(10), made.task.clocked_id)
    if connection.vendor != "mysql":
        assert not Change.objects.exists()
    definition = definitions.fetch("default", [made.task.pk])[made.task.pk]
    assert definition.copied() == task_states.read("default", [made.task.pk])[made.task.pk].copied


def test_a_plan_that_commits_after_its_time_is_seen_at_the_next_tick(bench: Bench) -> None:
    bench.work(5)
    with transaction.atomic():
        ask(seconds=1)
    assert TaskState.objects.update(wake_at=at(1)) == 1  # as the database's clock was before the commit
    bench.work(60)
    TaskState.objects.all().delete()
    with transaction.atomic():
        ask("late", seconds=31)
    TaskState.objects.update(wake_at=at(31))
    clock.move(at(66))
    bench.tick()
    assert [name for name, _ in bench.sent] == ["k", "late"]


def test_a_state_that_was_left_behind_is_replaced_at_the_next_tick(bench: Bench) -> None:
    other = ask("other", 50)
    TaskState.objects.update(task_id=other.task.pk + 1)
    made = ask()
    assert made.task.pk == other.task.pk + 1
    bench.work(12)
    assert ("k", 10) in bench.sent


def statements(**more: Any) -> list[str]:
    """Those of one call, with BEGIN and COMMIT."""
    with CaptureQueriesContext(connection) as asked:
        assert ask(f"k{ClockedSchedule.objects.count()}{len(more)}", **more).created
    return [each["sql"] for each in asked][1:]  # that of the count is the first


@pytest.mark.parametrize("given", [{}, {"at": timedelta(days=1), "tags": ["a"], "queue": "q"}])
def test_a_new_follow_up_takes_few_statements(bench: Bench, given: dict[str, Any]) -> None:
    """Nothing is asked about keys that nobody has lost. The first call in a process also looks at the tables."""
    ask("first")
    one, around = connection.vendor == "postgresql", {"postgresql": 0, "mysql": 3, "sqlite": 2}[connection.vendor]
    mine = 1 if one else 5 + (connection.vendor == "mysql")  # MySQL's clock is asked first
    assert len(statements(**given)) <= mine + around
    with transaction.atomic():
        assert len(statements(**given, args=[1])) <= mine + (
            0 if one else 4
        )  # a savepoint, SQLite's lock, and the hint


def test_a_loser_leaves_no_instant_behind(bench: Bench) -> None:
    """The key is there and another instant is asked for: nothing is inserted."""
    ask()
    assert not ask(seconds=20).created
    assert ClockedSchedule.objects.count() == 1
