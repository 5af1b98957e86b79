"""Who waits for whom: open transactions on different values, or on one row that is there, do not wait at all."""

from __future__ import annotations

import pytest

from tests.connections import with_isolation, with_options
from tests.models.values import KINDS
from tests.processes import processes, run_python
from tests.scratch import Scratch

pytestmark = pytest.mark.concurrency


def work(using: str, kind: str, number: int, shared: int) -> None:
    """What people's transactions do: a task on a new value, a task on a row that is there, a task edited."""
    from onebeat.models import PeriodicTask
    from tests.models.values import model, value

    rows, tasks = model(kind).objects.using(using), PeriodicTask.objects.using(using)
    new, _ = rows.get_or_create(**value(kind, number))
    old, _ = rows.get_or_create(**value(kind, shared))
    old.save(using=using)
    rows.bulk_create([model(kind)(**value(kind, each)) for each in (shared, number, number + 1)])
    for name, row in (("new", new), ("old", old)):
        tasks.create(name=f"{name} {kind} {number}", task="t", one_off=True, **{kind: row})
    mine = tasks.get(name=f"mine {number}")
    mine.description = "edited"
    mine.save(using=using)
    tasks.filter(pk=mine.pk).update(enabled=False)


def two_open_transactions() -> int:
    """Each does all that while the other is open. A wait of two seconds is an error here."""
    from onebeat.models import PeriodicTask
    from tests.connections import impatient, other
    from tests.models.values import obtain

    for number in (10, 20):
        row, _ = obtain("interval", "create", 1)
        PeriodicTask.objects.create(name=f"mine {number}", task="t", interval=row)
    for kind in KINDS:
        obtain(kind, "create", 15)
    with impatient("default"), impatient(other()):
        for kind in KINDS:
            work("default", kind, 10, shared=15)
            work("other", kind, 20, shared=15)
    return PeriodicTask.objects.count()


def test_open_transactions_do_not_wait_for_each_other(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time, so the second transaction waits for the first")
    assert run_python(database.env, two_open_transactions) == 2 + 2 * 2 * len(KINDS)


def test_nor_do_they_under_repeatable_read(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time, so the second transaction waits for the first")
    env = with_isolation(database, "repeatable read")
    assert run_python(env, two_open_transactions) == 2 + 2 * 2 * len(KINDS)


def first_statement(index: int, rounds: int) -> list[int]:
    """Transactions whose first statement is ours, and that go on to write."""
    from django.db import transaction

    from onebeat.models import PeriodicTask
    from tests.models.values import obtain

    got = []
    for number in range(rounds):
        with transaction.atomic():
            row, _ = obtain("clocked", "get_or_create", number, spelling=index)
            PeriodicTask.objects.create(name=f"{index} {number}", task="t", clocked=row, one_off=True)
        got.append(row.pk)
    return got


def edits(index: int, rounds: int) -> None:
    """Edits outside a transaction, by every way that reads before it writes."""
    from onebeat.models import PeriodicTask
    from tests.models.values import model, obtain

    row, _ = obtain("interval", "create", index)
    task = PeriodicTask.objects.create(name=str(index), task="t", interval=row)
    rows = model("interval").objects
    for number in range(1, rounds + 1):
        row.every = 1000 * number + index
        row.save()
        rows.filter(pk=row.pk).update(every=2000 * number + index)
        row.every = 3000 * number + index
        rows.bulk_update([row], ["every"])
        rows.update_or_create(every=row.every, period="seconds", defaults={"period": "days"})
        rows.update_or_create(every=row.every, period="days", defaults={"period": "seconds"})
        row.refresh_from_db()
        PeriodicTask.objects.filter(pk=task.pk).update(one_off=False)


@pytest.mark.parametrize("mode", ["IMMEDIATE", "DEFERRED"])
def test_sqlite_is_never_locked_against_us(database: Scratch, mode: str) -> None:
    if database.vendor != "sqlite":
        pytest.skip("the modes are SQLite's")
    env = with_options(database, transaction_mode=mode)
    outcomes = processes(32, env, first_statement, 6, limit_seconds=120)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert len({tuple(outcome.value) for outcome in outcomes}) == 1
    outcomes = processes(8, env, edits, 5, limit_seconds=120)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
