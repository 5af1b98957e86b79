"""Merging duplicate schedule rows of a database that was taken over. The oldest row of a value stays.

Whatever is done here is done again from the start after a crash: the next look finds what is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from django.db import DatabaseError, connections

from onebeat.db import transactions, upserts
from onebeat.db.catalog import Reference
from onebeat.takeover.arrive.canonical_values import SPELLED
from onebeat.takeover.arrive.tables import ScheduleTable, listed

#: Rows looked at, duplicates looked for and duplicates merged at a time.
READ, ROUND, BATCH = 10_000, 50_000, 1_000
#: How long a merge outside the final lock waits for somebody's lock. Below PostgreSQL's deadlock_timeout (1 s): nobody
#: else's transaction is chosen as the victim. MariaDB does not wait at all, since it chooses at once.
_PATIENCE = "100ms"

#: Gets a line that says how far it is.
Progress = Callable[[str], None]


@dataclass
class MergeReport:
    """What was done to one table, or would be."""

    respelled: int = 0
    merged: int = 0
    #: How many rows each kept row stands for besides itself.
    kept: Counter[int] = field(default_factory=Counter)
    #: How many rows of each referring column were pointed elsewhere.
    repointed: Counter[str] = field(default_factory=Counter)

    def add(self, other: MergeReport) -> None:
        """Count another one in."""
        self.respelled += other.respelled
        self.merged += other.merged
        self.kept += other.kept
        self.repointed += other.repointed


# -- canonical values ----------------------------------------------------------------------------------------------


def respell(table: ScheduleTable, report: MergeReport, after: int, progress: Progress) -> int:
    """Give the rows that follow `after` the canonical form of their values. Returns the last key that was seen."""
    columns, canonical = SPELLED[table.kind]
    if table.kind == "clocked" and table.vendor != "sqlite":
        return after
    pk, shown = table.quoted(table.pk), table.as_text(columns)
    sql = f"SELECT {pk}, {shown} FROM {table.quoted(table.name)} WHERE {pk} > %s ORDER BY {pk} LIMIT {READ}"
    while rows := table.rows(sql, [after]):
        wrong = [key for key, *values in rows if canonical(tuple(values)) != tuple(values)]
        if wrong:
            report.respelled += transactions.retrying(table.using, partial(_respell, table, wrong))
        after = rows[-1][0]
        progress(f"{table.kind}: canonical values, up to row {after}")
    return after


def _respell(table: ScheduleTable, keys: Sequence[int]) -> int:
    columns, canonical = SPELLED[table.kind]
    pk, kinds = table.quoted(table.pk), dict.fromkeys(columns, "text")
    sql = f"SELECT {pk}, {table.as_text(columns)} FROM {table.quoted(table.name)} WHERE {pk} IN ({listed(keys)})"
    lock = "" if table.vendor == "sqlite" else f" ORDER BY {pk} FOR UPDATE"
    with transactions.short_transaction(table.using):
        _limit_waiting(table)
        with _without_waiting(table):
            rows = [(key, *canonical(tuple(values))) for key, *values in table.rows(sql + lock)]
        upserts.update_rows(table.using, table.name, [table.pk], kinds, rows)
        return len(rows)


# -- one row -------------------------------------------------------------------------------------------------------


def duplicates(table: ScheduleTable, limit: int, where: str = "") -> list[tuple[int, int]]:
    """(duplicate, the oldest row of its value), at most `limit` of them."""
    sql = f"SELECT id, oldest FROM ({table.grouped(where)}) x WHERE id <> oldest ORDER BY oldest, id LIMIT {limit}"
    return [(int(key), int(oldest)) for key, oldest in table.rows(sql)]


def merge_most(table: ScheduleTable, report: MergeReport, progress: Progress) -> None:
    """Merge in small transactions, while everybody goes on writing. Rows locked by others are left for later."""
    again = 3
    while found := duplicates(table, ROUND):
        before = report.merged
        for start in range(0, len(found), BATCH):
            report.add(_batch(table, found[start : start + BATCH]))
            progress(f"{table.kind}: {report.merged} duplicates merged")
        again -= len(found) < ROUND
        if len(found) < BATCH or not again or report.merged == before:
            return


def _batch(table: ScheduleTable, found: Sequence[tuple[int, int]]) -> MergeReport:
    keys = sorted({key for pair in found for key in pair})
    try:
        with transactions.short_transaction(table.using):
            _limit_waiting(table)
            mine = _lock(table, keys)
            with _without_waiting(table):  # not before: MariaDB 10.11 then fails in SKIP LOCKED, with error 1180
                return merge(table, mine)
    except DatabaseError as error:
        if not transactions.retryable(error) or transactions.in_transaction(table.using):
            raise
        return MergeReport()


def _lock(table: ScheduleTable, keys: Sequence[int]) -> Sequence[int]:
    """Lock these rows, and so keep new references to them out. Returns those that nobody else has locked."""
    if table.vendor == "sqlite":
        return keys
    pk = table.quoted(table.pk)
    sql = f"SELECT {pk} FROM {table.quoted(table.name)} WHERE {pk} IN ({listed(keys)}) ORDER BY {pk} FOR UPDATE"
    return [int(key) for (key,) in table.rows(f"{sql} SKIP LOCKED")]


def merge(table: ScheduleTable, keys: Sequence[int] | None = None) -> MergeReport:
    """Merge the duplicates among the rows `keys`, which the caller has locked (None: among all of the table)."""
    report = MergeReport()
    if keys is not None and len(keys) < 2:
        return report
    where = "" if keys is None else f" WHERE {table.quoted(table.pk)} IN ({listed(keys)})"
    while found := duplicates(table, BATCH, where):
        for reference in table.references:
            report.repointed[reference.name] += _repoint(table, reference, found)
        dropped = [key for key, _ in found]
        table.run(f"DELETE FROM {table.quoted(table.name)} WHERE {table.quoted(table.pk)} IN ({listed(dropped)})")
        report.merged += len(dropped)
        report.kept.update(oldest for _, oldest in found)
    return report


def _repoint(table: ScheduleTable, reference: Reference, found: Sequence[tuple[int, int]]) -> int:
    """Point what refers to the duplicates at the oldest rows; returns how many rows did."""
    column, target = table.quoted(reference.column), reference.table
    pairs = [(reference.literal(key), reference.literal(oldest)) for key, oldest in found]
    if table.vendor == "mysql":
        values = " UNION ALL ".join(f"SELECT {key} AS id, {oldest} AS oldest" for key, oldest in pairs)
        same = reference.condition(table.using, target, "v.id")
        return table.run(f"UPDATE {target} JOIN ({values}) v ON {same} SET {target}.{column} = v.oldest")
    values = ", ".join(f"({key}, {oldest})" for key, oldest in pairs)
    new = f"CAST(v.column2 AS {reference.cast})" if reference.cast else "v.column2"
    same = reference.condition(table.using, target, "v.column1")
    return table.run(f"UPDATE {target} SET {column} = {new} FROM (VALUES {values}) AS v WHERE {same}")


def _limit_waiting(table: ScheduleTable) -> None:
    if table.vendor == "postgresql":
        table.run(f"SET LOCAL lock_timeout = '{_PATIENCE}'")


@contextmanager
def _without_waiting(table: ScheduleTable) -> Iterator[None]:
    """No waiting for row locks on MariaDB (on MySQL, a second): a setting of the session, put back afterwards."""
    if table.vendor != "mysql":
        yield
        return
    with connections[table.using].cursor() as cursor:
        cursor.execute("SELECT @@innodb_lock_wait_timeout")
        before = int(cursor.fetchone()[0])
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 0")
        try:
            yield
        finally:
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {before}")
