"""Stricter isolation: where a row can be returned it is; where none can, the database's own error says to run again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.connections import with_isolation
from tests.models.test_unique_rows_race import check, race, rows_of_every_kind
from tests.models.values import KINDS, WAYS
from tests.processes import eventually, processes, run_python
from tests.scratch import Scratch

pytestmark = pytest.mark.concurrency

LEVELS = ["repeatable read", "serializable"]


def behind_a_snapshot() -> dict[str, list[Any]]:
    """Ask, in a transaction whose snapshot is older, for values that another connection has committed since.

    Gives for each kind and way what the winner and the loser got: keys, or the error's class and code.
    """
    from django.db import transaction

    from tests.connections import other, sqlstate
    from tests.models.values import model, obtain, value

    found = {}
    for number, (kind, way) in enumerate((kind, way) for kind in KINDS for way in (*WAYS, "bulk_create")):
        rows = model(kind).objects
        try:
            with transaction.atomic():
                rows.count()
                winner = rows.using(other()).create(**value(kind, number)).pk
                if way == "bulk_create":
                    loser = rows.bulk_create([model(kind)(**value(kind, number))])[0].pk
                else:
                    loser = obtain(kind, way, number)[0].pk
        except Exception as error:
            loser = [type(error).__name__, sqlstate(error)]
        again = model(kind)(**value(kind, number))
        again.save()
        found[f"{kind} {way}"] = [winner, loser, again.pk]
    return found


def test_an_old_snapshot_of_postgresql_gets_its_own_error(database: Scratch) -> None:
    if database.vendor != "postgresql":
        pytest.skip("PostgreSQL's answer; MariaDB's is the next test")
    for level in LEVELS:
        found = run_python(with_isolation(database, level), behind_a_snapshot)
        assert [loser for _, loser, _ in found.values()] == [["OperationalError", "40001"]] * len(found)
        assert len(found) == len(KINDS) * (len(WAYS) + 1)
        assert [name for name, (winner, _, again) in found.items() if winner != again] == []
        run_python(database.env, forget)


def test_an_old_snapshot_of_mariadb_gets_the_row(database: Scratch) -> None:
    if database.vendor != "mysql":
        pytest.skip("MariaDB's answer; PostgreSQL's is the test before")
    found = run_python(with_isolation(database, "repeatable read"), behind_a_snapshot)
    assert len(found) == len(KINDS) * (len(WAYS) + 1)
    assert [name for name, keys in found.items() if len(set(map(str, keys))) != 1] == []


@pytest.mark.parametrize("level", LEVELS)
def test_outside_a_transaction_it_is_tried_again(database: Scratch, level: str) -> None:
    if database.vendor == "sqlite":
        pytest.skip("SQLite has one level, and it is tested as it is")
    outcomes = processes(16, with_isolation(database, level), race, 10, False, limit_seconds=120)
    check(outcomes, run_python(database.env, rows_of_every_kind), 10)


def against_an_open_winner() -> dict[str, list[Any]]:
    """Each way waits, outside a transaction, for a transaction that has inserted the value and then commits.

    Its statement began before that commit, so under these levels PostgreSQL refuses it once.
    """
    from django.db import connection, transaction

    from tests.connections import other
    from tests.models.values import model, obtain, value

    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    found: dict[str, list[Any]] = {}

    def lose(name: str, kind: str, way: str, number: int) -> None:
        try:
            if way == "bulk_create":
                found[name].append(model(kind).objects.bulk_create([model(kind)(**value(kind, number))])[0].pk)
            else:
                found[name].append(obtain(kind, way, number)[0].pk)
        except Exception as error:
            found[name].append(repr(error))
        connection.close()

    def is_waiting() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(waiting)
            return bool(cursor.fetchone()[0])

    for number, (kind, way) in enumerate((kind, way) for kind in KINDS for way in (*WAYS, "bulk_create")):
        name = f"{kind} {way}"
        loser = threading.Thread(target=lose, args=[name, kind, way, number])
        with transaction.atomic(using=other()):
            found[name] = [model(kind).objects.using(other()).create(**value(kind, number)).pk]
            loser.start()
            eventually(is_waiting, 20, f"{name} to wait")
        loser.join(30)
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_outside_a_transaction_a_refusal_is_not_seen(database: Scratch, level: str) -> None:
    if database.vendor != "postgresql":
        pytest.skip("PostgreSQL alone refuses it")
    found = run_python(with_isolation(database, level), against_an_open_winner)
    assert len(found) == len(KINDS) * (len(WAYS) + 1)
    assert {name: keys for name, keys in found.items() if len(keys) != 2 or keys[0] != keys[1]} == {}


def forget() -> None:
    from tests.models.values import model

    for kind in KINDS:
        model(kind).objects.all().delete()
