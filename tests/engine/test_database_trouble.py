"""A database that answers and yet does not do as it is told: read-only for a while, full, or set back by a failover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from onebeat.core import clock
from onebeat.engine.loop import Loop
from onebeat.engine.stop import Stop
from onebeat.models import Occurrence, TaskState
from tests.engine.kit import Bench, at, clocked, every, ledger, options, task


@contextmanager
def read_only() -> Iterator[None]:
    """As after a failover to a replica that is not promoted yet. New connections find it so too."""
    name = connection.ops.quote_name(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    connection.close()
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = off")
            cursor.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        connection.close()


@contextmanager
def full() -> Iterator[None]:
    """No row more fits into the ledger."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION onebeat_full() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        cursor.execute(
            "CREATE TRIGGER onebeat_full BEFORE INSERT ON onebeat_occurrence EXECUTE FUNCTION onebeat_full()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION onebeat_full() CASCADE")


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="made with PostgreSQL's own means")
@pytest.mark.parametrize("trouble", [read_only, full])
def test_nothing_is_lost_while_nothing_can_be_written(bench: Bench, trouble: Any) -> None:
    """Nothing is sent without its record. Afterwards each policy decides about what came due meanwhile."""
    one, each = task("once", clocked=clocked(at(5))), task("each", interval=every(10))
    options(each, missed="all")
    loop = Loop(bench.engine, Stop())
    loop.tick()
    with trouble():
        for second in range(1, 61):
            clock.move(at(second))
            assert loop.tick() > 0, "it is tried again after a pause"
        assert bench.sent == []
    clock.move(at(61))
    loop.tick()
    assert sorted(bench.sent) == [*(("each", n) for n in range(10, 61, 10)), ("once", 5)]
    assert [row[1] for row in ledger(one)] == ["sent"]
    loop.close()


def test_what_a_failover_took_back_is_sent_again_under_the_same_id(bench: Bench) -> None:
    """A replica that did not have the last commits takes over: what they recorded has left all the same."""
    task("every", interval=every(10))
    task("once", clocked=clocked(at(12)))
    bench.work(9)
    states, rows = list(TaskState.objects.values()), list(Occurrence.objects.values())
    bench.work(3)
    assert bench.sent == [("every", 10), ("once", 12)]
    TaskState.objects.all().delete()
    Occurrence.objects.all().delete()
    TaskState.objects.bulk_create([TaskState(**row) for row in states])
    Occurrence.objects.bulk_create([Occurrence(**row) for row in rows])
    bench.work(10)
    assert bench.sent == [("every", 10), ("once", 12), ("every", 10), ("once", 12), ("every", 20)]
    ids = [message.id for message in bench.outbox.messages]
    assert ids[:2] == ids[2:4] and len(set(ids)) == 3
