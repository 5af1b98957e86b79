"""A hundred processes want the same value at the same moment: one row, no error, one of them made it."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import nullcontext
from typing import Any

import pytest

from tests.models.values import KINDS, WAYS
from tests.processes import Outcome, processes, run_python
from tests.scratch import Scratch

PROCESSES = 100
ROUNDS = 30

pytestmark = [pytest.mark.concurrency, pytest.mark.slow]


def race(index: int, rounds: int, may_be_atomic: bool = True) -> dict[str, list[Any]]:
    """For each kind, round by round: the row's key. And the keys of the rows made here, and what went wrong."""
    from django.db import transaction
    from django.db.models.signals import post_save

    from tests.models.values import model, obtain

    made: list[list[Any]] = []

    def note(instance: Any, created: bool, **rest: Any) -> None:
        if created:
            made.append([type(instance).__name__, instance.pk])

    got, wrong = [], []
    for kind in KINDS:
        post_save.connect(note, sender=model(kind))
        for number in range(rounds):
            # Every fifth round the ways are mixed; in the others all take the same.
            way = WAYS[(index if number % 5 == 4 else number) % len(WAYS)]
            atomic = may_be_atomic and number // len(WAYS) % 2
            made_before = len(made)
            try:
                with transaction.atomic() if atomic else nullcontext():
                    row, created = obtain(kind, way, number, spelling=index)
            except Exception as error:
                wrong.append(f"{kind} {way} {number}: {error!r}")
                continue
            got.append([kind, number, row.pk])
            if created not in (None, len(made) > made_before):
                wrong.append(f"{kind} {way} {number}: created is {created}, its signal said otherwise")
    return {"got": got, "made": made, "wrong": wrong}


def rows_of_every_kind() -> dict[str, list[int]]:
    from tests.models.values import stored

    return {kind: stored(kind) for kind in KINDS}


def check(outcomes: list[Outcome], rows: dict[str, list[int]], rounds: int) -> None:
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    assert [line for outcome in outcomes for line in outcome.value["wrong"]] == []

    keys: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    for outcome in outcomes:
        for kind, number, key in outcome.value["got"]:
            keys[kind, number][key] += 1
    assert len(keys) == len(KINDS) * rounds
    assert {name: found for name, found in keys.items() if list(found.values()) != [len(outcomes)]} == {}

    assert {kind: len(found) for kind, found in rows.items()} == dict.fromkeys(KINDS, rounds)
    made = Counter((name, key) for outcome in outcomes for name, key in outcome.value["made"])
    assert made == {(f"{kind.capitalize()}Schedule", key): 1 for kind, found in rows.items() for key in found}


def test_one_row_for_each_value(database: Scratch) -> None:
    outcomes = processes(PROCESSES, database.env, race, ROUNDS, limit_seconds=280)
    check(outcomes, run_python(database.env, rows_of_every_kind), ROUNDS)


def seize(index: int, rounds: int) -> list[list[Any]]:
    """Edit the row of one value into another that the others insert at the same time."""
    from tests.models.values import model, obtain, value

    got = []
    for number in range(rounds):
        row, created = obtain("interval", "create", number)[0], False
        if index % 2:
            fields = value("interval", number)
            row, created = model("interval").objects.update_or_create(
                every=fields["every"], period="seconds", defaults={"period": "hours"}
            )
        else:
            row, created = model("interval").objects.get_or_create(every=number + 1, period="hours")
        got.append([number, row.every, row.period, created])
    return got


def test_an_edit_may_meet_an_insert_of_its_new_value(database: Scratch) -> None:
    outcomes = processes(16, database.env, seize, 20, limit_seconds=120)
    assert [outcome.error for outcome in outcomes if outcome.error] == []
    wrong = [got for outcome in outcomes for got in outcome.value if got[1:3] != [got[0] + 1, "hours"]]
    assert wrong == []
