"""Two values taken in opposite order: the database's own error in a caller's transaction, none in the library's."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from contextlib import nullcontext
from typing import Any

import pytest

from tests.models.values import KINDS
from tests.processes import processes, run_python
from tests.scratch import Scratch

pytestmark = pytest.mark.concurrency


def crosswise() -> list[list[str]]:
    """Two transactions take two new values, each the other's first second. What the loser saw, and what came after."""
    from django.db import connection, transaction

    from tests.connections import sqlstate
    from tests.models.values import obtain

    both_hold_one = threading.Barrier(2, timeout=20)
    seen: list[list[str]] = [[], []]

    def take(mine: int) -> None:
        try:
            with transaction.atomic():
                obtain("clocked", "get_or_create", mine)
                both_hold_one.wait()
                try:
                    obtain("clocked", "get_or_create", 1 - mine)
                except Exception as error:
                    seen[mine] += [type(error).__name__, sqlstate(error)]
                    obtain("clocked", "get_or_create", 2)
        except Exception as error:
            seen[mine].append(type(error).__name__)
        connection.close()

    threads = [threading.Thread(target=take, args=[number]) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
    return sorted(seen)


def times() -> list[str]:
    from tests.models.values import model

    return sorted(str(time) for time in model("clocked").objects.values_list("clocked_time", flat=True))


def test_a_deadlock_of_two_callers_is_the_databases_to_name(database: Scratch) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one writer: the second transaction waits at its first value, and nothing can cross")
    winner, loser = run_python(database.env, crosswise, limit_seconds=60)
    assert winner == []
    code = {"postgresql": "40P01", "mysql": "1213"}[database.vendor]
    # And what is left of the lost transaction takes no further statement, so that no half of it is committed.
    assert loser == ["OperationalError", code, "TransactionManagementError"]
    assert run_python(database.env, times) == ["2030-01-01 00:00:00+00:00", "2030-01-01 00:00:01+00:00"]


def many(index: int, rounds: int, size: int) -> list[list[Any]]:
    """Bulk inserts of the same values by everybody, each in an order and a spelling of its own."""
    from django.db import transaction

    from tests.models.values import model, value

    order = random.Random(index)
    got = []
    for round_number in range(rounds):
        for kind in KINDS:
            numbers = [*range(round_number * size, (round_number + 1) * size)] * 2
            order.shuffle(numbers)
            rows = [model(kind)(**value(kind, number, order.randrange(3))) for number in numbers]
            # Inside a transaction nothing is tried again: there the order of the keys alone must do.
            with transaction.atomic() if round_number % 2 else nullcontext():
                made = model(kind).objects.bulk_create(rows)
            got += [[kind, number, row.pk] for number, row in zip(numbers, made, strict=True)]
    return got


def test_bulk_inserts_never_cross(database: Scratch) -> None:
    outcomes = processes(24, database.env, many, 4, 15, limit_seconds=120)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    keys: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for outcome in outcomes:
        for kind, number, key in outcome.value:
            keys[kind, number].add(key)
    assert len(keys) == len(KINDS) * 60
    assert {name: found for name, found in keys.items() if len(found) != 1} == {}
    assert len(run_python(database.env, times)) == 60
