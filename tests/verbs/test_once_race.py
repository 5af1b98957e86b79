"""Many processes ask for one key, move it and cancel it while a scheduler claims: one row, one run."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest

from tests.connections import with_isolation
from tests.processes import Outcome, eventually, processes, run_python
from tests.scratch import Scratch

pytestmark = [pytest.mark.concurrency, pytest.mark.long("mariadb", "sqlite")]

PROCESSES = 100
#: Many at once or one by one; in a transaction; at instants of one's own.
ROUNDS = ((True, False, True), (True, True, False), (False, False, True), (False, True, False))


def race(index: int) -> dict[str, list[Any]]:
    """Ask for the same keys in each round, one by one and many at once, in and out of a transaction."""
    from datetime import UTC, datetime, timedelta

    from django.db import transaction

    import onebeat
    from onebeat.db import transactions

    found: dict[str, list[Any]] = {"got": [], "wrong": []}
    then = datetime(2030, 1, 1, tzinfo=UTC)
    for number, (many, inside, own) in enumerate(ROUNDS):
        at: Any = timedelta(days=1) if own else then  # from each one's own now
        keys = [f"{number} {letter}" for letter in ("abcd" if index % 2 else "dcba")]
        items: list[onebeat.OnceItem] = [{"key": key, "at": at, "task": "t", "args": [index]} for key in keys]
        for again in (True, True, True, False):
            try:
                with transaction.atomic() if inside else nullcontext():
                    if many:
                        answers = onebeat.once_many(items)
                    else:
                        answers = [onebeat.once(f"{number}", at=at, task="t", args=[index])]
                break
            except Exception as error:
                # Whoever opened a transaction runs it again where the database asks for that; nobody else has to.
                if not (again and inside and transactions.retryable(error)):
                    found["wrong"].append(f"{number}: {error!r}")
                    return found
        found["got"] += [[one.key, one.task.pk, one.created, one.task.args == f"[{index}]"] for one in answers]
    return found


def left() -> dict[str, int]:
    from onebeat.models import ClockedSchedule, PeriodicTask, TaskOptions, TaskState

    unused = ClockedSchedule.objects.filter(periodictask=None)
    models = (PeriodicTask, TaskOptions, TaskState)
    return {model.__name__: model.objects.count() for model in models} | {"unused": unused.count()}


def check(outcomes: list[Outcome], rows: dict[str, int]) -> None:
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert [line for outcome in outcomes for line in outcome.value["wrong"]] == []
    got = [tuple(one) for outcome in outcomes for one in outcome.value["got"]]
    keys = {key for key, *_ in got}
    assert len(keys) == sum(4 if many else 1 for many, *_ in ROUNDS)
    assert len({(key, row) for key, row, *_ in got}) == len(keys)
    assert Counter(key for key, _, created, _ in got if created) == dict.fromkeys(keys, 1)
    # Who made it sees its own arguments in it, and nobody else does.
    assert [(key, mine) for key, _, created, mine in got if created != mine] == []
    assert rows == {**dict.fromkeys(("PeriodicTask", "TaskOptions", "TaskState"), len(keys)), "unused": 0}


def test_a_hundred_processes_and_one_key(database: Scratch) -> None:
    check(processes(PROCESSES, database.env, race), run_python(database.env, left))


KEYS = 8


def move_and_claim(index: int) -> Any:
    """One process is the scheduler, the others move the keys about, until each has run."""
    from datetime import timedelta
    from random import Random

    import onebeat
    from onebeat.models import Occurrence
    from tests.engine.kit import Bench

    if index:
        random, answers = Random(index), []
        while len(answers) < 4 * KEYS:
            key, at = f"k{random.randrange(KEYS)}", timedelta(seconds=random.choice((-1, 0, 0.1, 0.2)))
            if random.random() < 0.1:
                onebeat.cancel(key)
            one = onebeat.once(key, at=at, task="t", if_exists="renew")
            answers.append((one.created or one.rescheduled, one.state))
        return answers
    bench = Bench()
    eventually(
        lambda: bench.tick() >= 0 and Occurrence.objects.filter(state="sent").count() >= KEYS, 90, "every key to run"
    )
    bench.engine.close()
    return bench.sent and [name for name, _ in bench.sent]


def ledger() -> list[Any]:
    from onebeat.models import Occurrence, PeriodicTask
    from onebeat.models.instants import to_utc

    sent = Occurrence.objects.filter(state="sent")
    clocks = {one.pk: to_utc(one.clocked.clocked_time) for one in PeriodicTask.objects.select_related("clocked")}
    return [[one.task_name, clocks[one.task_id] == one.due_at] for one in sent]


def test_a_move_comes_before_the_claim_or_says_that_it_is_late(database: Scratch) -> None:
    outcomes = processes(4, database.env, move_and_claim, limit_seconds=150)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    keys = {f"k{number}" for number in range(KEYS)}
    assert Counter(outcomes[0].value) == dict.fromkeys(keys, 1)
    # The instant that it ran at is the last that anybody was told it has.
    assert sorted(run_python(database.env, ledger)) == sorted([key, True] for key in keys)
    answers = [tuple(answer) for outcome in outcomes[1:] for answer in outcome.value]
    assert {state for moved, state in answers if moved} == {"waiting"}
    assert {state for moved, state in answers if not moved} <= {"claimed", "sent"}


def behind_a_snapshot() -> list[Any]:
    """Ask, and then move and cancel, in a transaction whose snapshot is older than what another has committed."""
    from datetime import UTC, datetime, timedelta

    from django.db import transaction

    import onebeat
    from onebeat.models import PeriodicTask
    from tests.connections import other, sqlstate

    at, found = datetime(2030, 1, 1, tzinfo=UTC), []
    for number, verb in enumerate(("keep", "reschedule", "many", "cancel")):
        key, later = f"k{number}", at + timedelta(hours=number + 1)
        try:
            with transaction.atomic():
                PeriodicTask.objects.count()
                made = onebeat.once(key, at=at, task="t", using=other())
                onebeat.once(key, at=later, task="t", if_exists="reschedule", using=other())
                if verb == "cancel":
                    found.append(onebeat.cancel(key))
                elif verb == "many":
                    found.append(onebeat.once_many([{"key": key, "at": at, "task": "t"}])[0].task.pk == made.task.pk)
                else:
                    one = onebeat.once(key, at=at, task="t", if_exists="reschedule" if verb == "move" else "keep")
                    found.append(
                        [
                            one.created,
                            one.rescheduled,
                            one.task.pk == made.task.pk,
                            one.at == (at if verb == "reschedule" else later),
                        ]
                    )
        except Exception as error:
            found.append([type(error).__name__, sqlstate(error)])
    return found


def test_behind_an_old_snapshot(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    found = run_python(with_isolation(database, "repeatable read"), behind_a_snapshot)
    if database.vendor == "postgresql":
        # No row can be returned; a task that the snapshot does not show is not there to be cancelled.
        assert found == [["OperationalError", "40001"]] * 3 + [False]
    else:
        assert found == [[False, False, True, True], [False, True, True, True], True, True]


def in_statements_of_their_own(index: int) -> list[Any]:
    """Ask for the same keys, each at an instant of one's own, where each statement's snapshot may be too old."""
    from datetime import timedelta

    import onebeat

    return [onebeat.once(f"k{number}", at=timedelta(days=1), task="t").created for number in range(8)]


def test_outside_a_transaction_no_error_reaches_the_caller_under_repeatable_read(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    outcomes = processes(8, with_isolation(database, "repeatable read"), in_statements_of_their_own)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert [sum(made) for made in zip(*(outcome.value for outcome in outcomes), strict=True)] == [1] * 8
    rows = run_python(database.env, left)
    assert rows == {**dict.fromkeys(("PeriodicTask", "TaskOptions", "TaskState"), 8), "unused": 0}
