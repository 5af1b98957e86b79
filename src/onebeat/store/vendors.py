"""What differs between PostgreSQL, MySQL/MariaDB and SQLite: the clock, locks, inserts that may lose, retryable errors.

No statement here depends on the state of a session, so that a pooler in transaction mode may sit in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db import DatabaseError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from onebeat.core import clock
from onebeat.store.batches import inserts, parts, recordset

T = TypeVar("T")
Row = Sequence[Any]

_CLOCK = {
    "postgresql": "clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "UTC_TIMESTAMP(6)",
}

#: SQLSTATEs after which the same transaction may simply be run again: serialization failure, deadlock, lock not
#: available.
_RETRYABLE_STATES = {"40001", "40P01", "55P03"}
#: The same of MySQL: deadlock, lock wait timeout, record changed since last read (MariaDB, innodb_snapshot_isolation).
_RETRYABLE_NUMBERS = {1213, 1205, 1020}


def connection(using: str) -> BaseDatabaseWrapper:
    return connections[using]


# -- instants: UTC, whatever USE_TZ and the session's time zone say ---------------------------------------------------


def to_column(vendor: str, instant: datetime | None) -> Any:
    """An aware instant as the parameter that a UTC column takes."""
    if instant is None:
        return None
    if instant.tzinfo is None:
        raise ValueError(f"an instant needs a time zone: {instant!r}")
    naive = (instant if instant.tzinfo is UTC else instant.astimezone(UTC)).replace(tzinfo=None)
    return naive if vendor == "postgresql" else naive.isoformat(sep=" ", timespec="microseconds")


def to_columns(using: str, row: Row) -> list[Any]:
    """As `to_rows`, for one."""
    return to_rows(using, [row])[0]


def to_rows(using: str, rows: Iterable[Row]) -> list[list[Any]]:
    """Rows of plain values, instants and uuids as parameters for columns of the engine's tables.

    Asking each model field costs more than the insert.
    """
    link = connection(using)
    vendor, native = link.vendor, link.features.has_native_uuid_field
    return [
        [
            to_column(vendor, value)
            if isinstance(value, datetime)
            else (value.hex if not native and isinstance(value, UUID) else value)
            for value in row
        ]
        for row in rows
    ]


def from_column(value: Any) -> datetime | None:
    """What a UTC column or the database's clock gives, as an aware instant."""
    if value is None or getattr(value, "tzinfo", None) is UTC:
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    assert isinstance(value, datetime)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _told(using: str) -> datetime | None:
    """The present instant where the database is not to be asked: SQLite has no clock but the host's, and a test may
    give another; None: ask.
    """
    told = clock.database_now()
    return clock.host_now() if told is None and connection(using).vendor not in _CLOCK else told


def clock_sql(using: str) -> tuple[str, list[Any]]:
    """A SQL expression for the database's present instant (SQLite: this host's), with its parameters.

    The real clock and never the start of the transaction.
    """
    vendor, told = connection(using).vendor, _told(using)
    return (_CLOCK[vendor], []) if told is None else ("%s", [to_column(vendor, told)])


def now(using: str) -> datetime:
    """The present instant by the database's clock."""
    told = _told(using)
    if told is not None:
        return told
    sql, params = clock_sql(using)
    with connection(using).cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        instant = from_column(cursor.fetchone()[0])
    assert instant is not None
    return instant


# -- transactions and errors ------------------------------------------------------------------------------------------


def in_transaction(using: str) -> bool:
    """Whether a caller's transaction is open: only that caller can undo what is done now, or run it again."""
    link = connection(using)
    return link.in_atomic_block or not link.get_autocommit()


def may_read_first(using: str) -> bool:
    """Whether a look may come before a write.

    In a deferred transaction of SQLite it may not: the upgrade of the lock fails at once ("database is locked") when
    another connection has written since the look, while a write that comes first waits for its turn.
    """
    link = connection(using)
    if link.vendor != "sqlite" or not in_transaction(using):
        return True
    return getattr(link, "transaction_mode", None) in ("IMMEDIATE", "EXCLUSIVE")


@contextmanager
def writing(using: str) -> Iterator[None]:
    """`atomic()` for a block that reads before it writes: a transaction of SQLite that begins here takes the write lock
    first.
    """
    link = connection(using)
    if link.vendor != "sqlite" or link.in_atomic_block:
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
    link = connection(using)
    if link.in_atomic_block or link.vendor == "sqlite":
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


# -- statements --------------------------------------------------------------------------------------------------------


def quoted(using: str, *names: str) -> str:
    """Names quoted for this database, separated by commas."""
    return ", ".join(map(connection(using).ops.quote_name, names))


def insert_or_lose(
    using: str,
    table: str,
    columns: Sequence[str] | Mapping[str, str],
    rows: Sequence[Row],
    unique: Sequence[str],
    *,
    named: bool = True,
    alike: Mapping[str, tuple[str, Any]] | None = None,
    returning: Sequence[str] = (),
) -> list[Row] | None:
    """Insert `rows`; a row whose `unique` columns are taken is left out. Gives the `returning` columns of those that
    went in, as the driver has them; None: this database does not say which, and the reader asks afterwards.

    `columns` may map each to its PostgreSQL type: then many rows are quicker there. `alike`: more columns, each with
    its PostgreSQL type and the value that all rows have. MySQL has no way to ignore one unique key alone, and INSERT
    IGNORE would hide other errors: the no-op update does. `named` False: any unique key counts, and it is no error if
    `unique` is none yet.
    """
    if not rows:
        return []
    link = connection(using)
    lose = f" ON CONFLICT{f' ({quoted(using, *unique)})' if named else ''} DO NOTHING"
    if link.vendor == "mysql":
        first = quoted(using, unique[0])
        lose = f" ON DUPLICATE KEY UPDATE {first} = {first}"
    tells = bool(returning) and link.vendor != "mysql"
    tail = f" RETURNING {quoted(using, *returning)}" if tells else ""
    inserted: list[Row] = []
    with link.cursor() as cursor:
        for sql, params in inserts(link, table, columns, rows, alike or {}):
            cursor.execute(sql + lose + tail, params)
            inserted += cursor.fetchall() if tells else ()
    return inserted if tells else None


#: Added to the key of a row that was there already, so that MySQL's one number tells both which row and whose it is.
_FOUND = 1 << 62


def insert_one_or_find(using: str, table: str, columns: Sequence[str], row: Row, pk: str) -> tuple[Any, bool]:
    """Insert one row, or learn that a unique key of it is taken: (primary key, True) or (primary key or None, False).

    Names no key to PostgreSQL and SQLite: naming one that is not there yet is an error, and while its index is being
    built it cannot be named and refuses rows all the same.

    None: the winner's row is there and this statement could not name it. The statement waits for a transaction that is
    inserting the same value. On PostgreSQL under REPEATABLE READ it raises SQLSTATE 40001 for a winner that the
    snapshot cannot see. MySQL takes the exclusive lock at once, so two losers cannot deadlock on a shared one; its row
    count does not tell an insert from a no-op update (Django connects with CLIENT_FOUND_ROWS), the number it hands back
    does.
    """
    link = connection(using)
    sql = f"INSERT INTO {quoted(using, table)} ({quoted(using, *columns)}) VALUES ({', '.join(['%s'] * len(columns))})"
    key = quoted(using, pk)
    with link.cursor() as cursor:
        if link.vendor == "mysql":
            cursor.execute(
                f"{sql} ON DUPLICATE KEY UPDATE {key} = IF(LAST_INSERT_ID({key} + {_FOUND}), {key}, {key})",
                row,
            )
            number = cursor.lastrowid
            return (number - _FOUND, False) if number >= _FOUND else (number, True)
        cursor.execute(f"{sql} ON CONFLICT DO NOTHING RETURNING {key}", row)
        found = cursor.fetchone()
        return (found[0], True) if found else (None, False)


def insert_or_find(
    using: str, table: str, columns: Mapping[str, str], rows: Sequence[Row], unique: str, pk: str
) -> dict[Any, tuple[Any, bool]]:
    """`insert_one_or_find` for many rows whose one `unique` column differs: by its value, (primary key, inserted here).
    `columns` maps each to its PostgreSQL type.

    A row that lost, and whose winner the statement could not name, is not in the answer. MySQL cannot say which rows of
    one statement went in, so there each is a statement of its own.
    """
    link, names = connection(using), list(columns)
    at = names.index(unique)
    if link.vendor == "mysql":
        return {row[at]: insert_one_or_find(using, table, names, row, pk) for row in rows}
    tail = f" ON CONFLICT DO NOTHING RETURNING {quoted(using, unique, pk)}"
    found: dict[Any, tuple[Any, bool]] = {}
    with link.cursor() as cursor:
        for sql, params in inserts(link, table, columns, rows):
            cursor.execute(sql + tail, params)
            found.update({value: (key, True) for value, key in cursor.fetchall()})
    return found


def update_rows(
    using: str,
    table: str,
    key: Sequence[str],
    columns: Mapping[str, str],
    rows: Sequence[Row],
    *,
    grows: str = "",
) -> None:
    """Give many rows their own values in one statement: each row is the key's values, then the columns' values.

    `columns` maps each column to its PostgreSQL type, which a list of values alone would not have. Rows whose key
    (which may include a version) does not match are left alone. `grows` names a column that counts
    up.
    """
    if not rows:
        return
    link = connection(using)
    names = [*key, *columns]
    q = link.ops.quote_name
    target = q(table)
    counted = f"{target}.{q(grows)}" if link.vendor == "mysql" else q(grows)
    count = f", {counted} = {target}.{q(grows)} + 1" if grows else ""
    match = " AND ".join(f"{target}.{q(name)} = v.{q(name)}" for name in key)
    assign = ", ".join(f"{q(name)} = v.{q(name)}" for name in columns)
    with link.cursor() as cursor:
        if link.vendor == "postgresql":
            source, param = recordset(link, {**dict.fromkeys(key, "bigint"), **columns}, rows)
            cursor.execute(f"UPDATE {target} SET {assign}{count} FROM {source} WHERE {match}", [param])
            return
        for part in parts(link, rows, len(names)):
            if link.vendor == "mysql":
                head = "SELECT " + ", ".join(f"%s AS {q(name)}" for name in names)
                values = " UNION ALL ".join([head] + ["SELECT " + ", ".join(["%s"] * len(names))] * (len(part) - 1))
                assign = ", ".join(f"{target}.{q(name)} = v.{q(name)}" for name in columns)
                sql = f"UPDATE ({values}) AS v STRAIGHT_JOIN {target} ON {match} SET {assign}{count}"
            else:
                one = "(" + ", ".join(["%s"] * len(names)) + ")"
                sql = (
                    f"WITH v({', '.join(map(q, names))}) AS (VALUES {', '.join([one] * len(part))}) "
                    f"UPDATE {target} SET {assign}{count} FROM v WHERE {match}"
                )
            cursor.execute(sql, [value for row in part for value in row])


def plain_text(using: str, value: str) -> str:
    """SQL for a text whose collation agrees with any other so treated, and which differs when a letter's case does.

    On MySQL tables of different age have different collations, and comparing them is an error.
    """
    return f"CONVERT({value} USING utf8mb4) COLLATE utf8mb4_bin" if connection(using).vendor == "mysql" else value


def distinct(using: str, left: str, right: str) -> str:
    """SQL for "left and right differ", where NULL equals NULL."""
    vendor = connection(using).vendor
    if vendor == "mysql":
        return f"NOT ({left} <=> {right})"
    return f"{left} IS NOT {right}" if vendor == "sqlite" else f"{left} IS DISTINCT FROM {right}"


def text(using: str, number: str) -> str:
    """SQL for a whole number as text."""
    return f"CAST({number} AS {'CHAR' if connection(using).vendor == 'mysql' else 'TEXT'})"


def whole(using: str, number: str) -> str:
    """SQL for a number rounded to a whole one, as text."""
    kind = "SIGNED" if connection(using).vendor == "mysql" else "BIGINT"
    return text(using, f"CAST(ROUND({number}) AS {kind})")


def concat(using: str, *parts: str) -> str:
    """SQL for texts joined together; NULL when one of them is."""
    if connection(using).vendor == "mysql":
        return f"CONCAT({', '.join(parts)})"
    return "(" + " || ".join(parts) + ")"
