"""Transactions that read before they write, short ones of the engine's own, and errors after which work is run again.

No statement here depends on the state of a session, so that a pooler in transaction mode may sit in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, OperationalError, connections, transaction

from onebeat.core import clock

T = TypeVar("T")


#: SQLSTATEs after which the same transaction may simply be run again: serialization failure, deadlock, lock not
#: available.
_RETRYABLE_STATES = {"40001", "40P01", "55P03"}


#: The same of MySQL: deadlock, lock wait timeout, record changed since last read (MariaDB, innodb_snapshot_isolation).
_RETRYABLE_NUMBERS = {1213, 1205, 1020}


def require_autocommit(using: str) -> None:
    """Raise `ImproperlyConfigured` for a database with `AUTOCOMMIT = False`: no step of a scheduler would be committed
    when it ends, so nothing of it would hold.
    """
    if not autocommits(using):
        raise ImproperlyConfigured(
            f"database {using!r}: onebeat's schedulers need AUTOCOMMIT = True, Django's default; it is set to False"
        )


def autocommits(using: str) -> bool:
    """Whether the settings let Django commit each statement outside a transaction."""
    return bool(connections[using].settings_dict["AUTOCOMMIT"])


def in_transaction(using: str) -> bool:
    """Whether a caller's transaction is open: only that caller can undo what is done now, or run it again."""
    link = connections[using]
    return link.in_atomic_block or not link.get_autocommit()


def snapshot_may_hide_rows(using: str) -> bool:
    """Whether a plain look may miss a row that a write has just run into: on MySQL, whose default isolation shows what
    was there when the transaction first looked, while writes and locking reads meet what is there now.
    """
    return connections[using].vendor == "mysql"


def may_read_first(using: str) -> bool:
    """Whether a look may come before a write.

    In a deferred transaction of SQLite it may not: the upgrade of the lock fails at once ("database is locked") when
    another connection has written since the look, while a write that comes first waits for its turn.
    """
    return not (begins_deferred(using) and in_transaction(using))


def begins_deferred(using: str) -> bool:
    """Whether transactions of this database take no lock until they write: SQLite, unless its options say otherwise."""
    link = connections[using]
    mode = link.settings_dict.get("OPTIONS", {}).get("transaction_mode")
    return link.vendor == "sqlite" and str(mode or "").upper() not in ("IMMEDIATE", "EXCLUSIVE")


def busy_seconds(using: str) -> float | None:
    """How long a statement of SQLite waits for another writer before it fails; None: another database."""
    link = connections[using]
    return float(link.settings_dict.get("OPTIONS", {}).get("timeout") or 5) if link.vendor == "sqlite" else None


@contextmanager
def writing(using: str) -> Iterator[None]:
    """`atomic()` for a block that reads before it writes: on SQLite the write lock is taken first.

    In a transaction that a caller began deferred there is no statement that only takes it, and it cannot be taken
    after a read. A deletion of no row takes it and does no harm; the table is there wherever keys are counted.
    """
    link = connections[using]
    if not may_read_first(using):
        with link.cursor() as cursor:  # changes nothing, and takes the write lock of the caller's transaction
            cursor.execute("DELETE FROM sqlite_sequence WHERE 1 = 0")
    if link.vendor != "sqlite" or in_transaction(using):
        with transaction.atomic(using=using):
            yield
        return
    link.ensure_connection()  # which sets the mode
    # The mode counts when the transaction begins, so it is put back before any statement of the block runs.
    before = getattr(link, "transaction_mode", None)
    link.transaction_mode = "IMMEDIATE"  # type: ignore[attr-defined]
    with ExitStack() as stack:
        try:
            stack.enter_context(transaction.atomic(using=using))
        finally:
            link.transaction_mode = before  # type: ignore[attr-defined]
        yield


@contextmanager
def short_transaction(using: str) -> Iterator[None]:
    """A transaction of the engine's own: every statement sees what is committed, and SQLite takes its write lock
    first.
    """
    link = connections[using]
    if in_transaction(using) or link.vendor == "sqlite":
        with writing(using):
            yield
        return
    if link.vendor == "mysql":
        with link.cursor() as cursor:  # holds for the next transaction only
            cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    with transaction.atomic(using=using):
        if link.vendor == "postgresql":  # the project, the role or the server may have another default
            with link.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        yield


def retryable(error: BaseException) -> bool:
    """Whether the database asks for the transaction to be run again: serialization, deadlock, lock timeout, SQLite
    busy.
    """
    cause = error.__cause__ if isinstance(error, DatabaseError) and error.__cause__ is not None else error
    if getattr(cause, "sqlstate", None) in _RETRYABLE_STATES:
        return True
    if isinstance(error, DatabaseError) and cause.args and cause.args[0] in _RETRYABLE_NUMBERS:
        return True
    return isinstance(error, OperationalError) and "locked" in str(cause)


def retrying(using: str, work: Callable[[], T], *, limit_seconds: float = 30.0) -> T:
    """Run `work`, and run it again with back-off while the database asks for that; inside a transaction, run it once.

    A transaction is lost as a whole, so only whoever opened it can run it again: the database's own error reaches them,
    and `atomic()` will not commit what is left of it.
    """
    if in_transaction(using):
        with transaction.mark_for_rollback_on_error(using=using):
            return work()
    deadline = clock.monotonic() + limit_seconds
    pause = 0.002
    while True:
        try:
            return work()
        except DatabaseError as error:
            if not retryable(error) or clock.monotonic() > deadline:
                raise
        clock.pause(random.uniform(0, pause))
        pause = min(pause * 2, 0.25)
