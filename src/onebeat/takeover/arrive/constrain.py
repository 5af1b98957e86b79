"""Adding the unique constraint of a schedule table while others write: beside them if that can be done, else under a
lock on the table and on every table that refers to it, in which the last duplicates are merged.

PostgreSQL: SHARE ROW EXCLUSIVE lets readers and checks of foreign keys through, and a unique index can be built under
it; the constraint is made from that index in a transaction of its own, since its lock (ACCESS EXCLUSIVE) taken on top
of the other one would meet readers that wait for us. MariaDB: LOCK TABLES. SQLite: one immediate transaction.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, IntegrityError, OperationalError

from onebeat.core import clock
from onebeat.db import transactions
from onebeat.takeover.arrive.tables import ScheduleTable

#: Rows from which the constraint is first tried beside the writers: its index takes long to build.
LARGE = 20_000
#: How long locks are asked for, in seconds, before `migrate` gives up.
LIMIT = 120.0
#: The wait for one lock, in seconds: the first time and at most. While it is below PostgreSQL's deadlock_timeout (1 s)
#: we give way to a transaction that waits for us in turn, and not that one to us.
_FIRST, _LONGEST = 0.1, 2.0
#: How often all the locks are asked for on MariaDB without waiting for any, in a round, and how many rounds: while we
#: wait for one and hold another, it would choose the other side as the victim of a deadlock, at once. Between the four
#: busiest writers there is a gap every ten attempts or so, if they are not woken from our pause into a transaction of
#: theirs; hence many attempts without a pause.
_AT_ONCE, _ROUNDS_AT_ONCE = 100, 200


def present(table: ScheduleTable, name: str) -> bool:
    """Whether the table has the constraint already."""
    vendor = table.vendor
    if vendor == "postgresql":
        sql = "SELECT 1 FROM pg_constraint WHERE conrelid = to_regclass(%s) AND conname = %s"
        return bool(table.rows(sql, [table.quoted(table.name), name]))
    if vendor == "mysql":
        sql = (
            "SELECT 1 FROM information_schema.statistics "
            "WHERE table_schema = DATABASE() AND table_name = %s AND index_name = %s"
        )
        return bool(table.rows(sql, [table.name, name]))
    return name in str(table.rows("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = %s", [table.name]))


def large(table: ScheduleTable) -> bool:
    """Whether the table has many rows."""
    return bool(table.rows(f"SELECT 1 FROM {table.quoted(table.name)} LIMIT 1 OFFSET {LARGE}"))


def beside_writers(table: ScheduleTable, name: str) -> bool:
    """Try to make the constraint without holding anybody up. Returns whether it is there; a duplicate prevents it."""
    vendor, title = table.vendor, table.quoted(name)
    if vendor == "sqlite" or transactions.in_transaction(table.using):
        return False
    if vendor == "mysql":
        sql = f"ALTER TABLE {table.quoted(table.name)} ADD CONSTRAINT {title} UNIQUE ({table.quoted(*table.value)})"
        try:
            with _lock_wait(table, 1):
                table.run(f"{sql}, ALGORITHM=INPLACE, LOCK=NONE")
        except (IntegrityError, OperationalError):
            return False
        return True
    columns = table.quoted(*table.value)
    try:
        table.run(f"CREATE UNIQUE INDEX CONCURRENTLY {title} ON {table.quoted(table.name)} ({columns})")
    except DatabaseError as error:
        table.run(f"DROP INDEX CONCURRENTLY IF EXISTS {title}")
        if isinstance(error, IntegrityError) or transactions.retryable(error):
            return False
        raise
    return from_index(table, name)


def from_index(table: ScheduleTable, name: str) -> bool:
    """PostgreSQL: make the constraint from the index of its name; an unfinished one is dropped. Returns whether it
    is there.
    """
    if table.vendor != "postgresql":
        return False
    title = table.quoted(name)
    sql = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s) AND indrelid = to_regclass(%s)"
    valid = [row[0] for row in table.rows(sql, [title, table.quoted(table.name)])]
    if valid == [False]:
        table.run(f"DROP INDEX {title}")
    if valid != [True]:
        return False

    def work(wait: float) -> None:
        with transactions.short_transaction(table.using):
            _timeout(table, wait)
            table.run(f"ALTER TABLE {table.quoted(table.name)} ADD CONSTRAINT {title} UNIQUE USING INDEX {title}")

    _insist(table, lambda attempt, wait: work(wait))
    return True


def under_lock(table: ScheduleTable, name: str, last: Callable[[], None], plain: Callable[[], None]) -> None:
    """Lock, call `last`, which merges what is left, and make the constraint. `plain` is Django's own way, for SQLite.

    Raises the database's own retryable error if the locks cannot be had for long.
    """
    vendor, title = table.vendor, table.quoted(name)

    def work(attempt: int, wait: float) -> None:
        with _locked(table, attempt, wait):
            last()
            if vendor == "postgresql":
                # The keys are checked now: an index cannot be built while such checks are pending.
                table.run("SET CONSTRAINTS ALL IMMEDIATE")
                table.run(f"CREATE UNIQUE INDEX {title} ON {table.quoted(table.name)} ({table.quoted(*table.value)})")
            elif vendor == "mysql":
                table.run(
                    f"ALTER TABLE {table.quoted(table.name)} "
                    f"ADD CONSTRAINT {title} UNIQUE ({table.quoted(*table.value)})"
                )
            else:
                plain()

    _insist(table, work)
    from_index(table, name)


def _insist(table: ScheduleTable, work: Callable[[int, float], None]) -> None:
    """Call work(attempt, seconds to wait for a lock) until it gets its locks."""
    deadline, wait, attempt = clock.monotonic() + LIMIT, _FIRST, 0
    while True:
        try:
            return work(attempt, wait)
        except DatabaseError as error:
            late = clock.monotonic() > deadline or transactions.in_transaction(table.using)
            if late or not transactions.retryable(error):
                raise
        clock.pause(random.uniform(0, _FIRST))
        wait, attempt = min(wait * 1.1, _LONGEST), attempt + 1


@contextmanager
def _locked(table: ScheduleTable, attempt: int, wait: float) -> Iterator[None]:
    """A lock on the table and all that refer to it. A transaction on PostgreSQL and SQLite, not on MySQL."""
    tables = list(dict.fromkeys([table.quoted(table.name), *(reference.table for reference in table.references)]))
    vendor = table.vendor
    if vendor == "mysql":
        with _lock_wait(table, int(wait) if attempt > _ROUNDS_AT_ONCE else 0):
            _lock_tables(table, "LOCK TABLES " + ", ".join(f"{name} WRITE" for name in tables))
            try:
                yield
            finally:
                table.run("UNLOCK TABLES")
        return
    with transactions.short_transaction(table.using):
        if vendor == "postgresql":
            _timeout(table, wait)
            # Whoever writes first here and then there waits for us while we wait for them, in one of the two orders.
            for name in tables if attempt % 2 == 0 else reversed(tables):
                table.run(f"LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")
        yield


def _lock_tables(table: ScheduleTable, sql: str) -> None:
    for _ in range(_AT_ONCE):
        with suppress(OperationalError):
            table.run(sql)
            return
    table.run(sql)


def _timeout(table: ScheduleTable, wait: float) -> None:
    table.run(f"SET LOCAL lock_timeout = '{int(wait * 1000)}ms'")


@contextmanager
def _lock_wait(table: ScheduleTable, seconds: int) -> Iterator[None]:
    """MySQL: how long to wait for a lock on a table. MariaDB takes 0, for not at all; MySQL makes it 1."""
    ((before,),) = table.rows("SELECT @@lock_wait_timeout")
    table.run(f"SET SESSION lock_wait_timeout = {seconds}")
    try:
        yield
    finally:
        table.run(f"SET SESSION lock_wait_timeout = {int(before)}")
