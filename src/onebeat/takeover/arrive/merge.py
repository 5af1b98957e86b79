"""Merging duplicate schedule rows of a database that was taken over. The oldest row of a value stays.

Whatever is done here is done again from the start after a crash: the next look finds what is left. No model is named,
because migrations use this with the tables as they are at that moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, connections

from onebeat.db import expressions, transactions, upserts
from onebeat.db.catalog import Reference, UniqueKey
from onebeat.takeover.arrive.canonical_values import SPELLED

#: Rows looked at, duplicates looked for and duplicates merged at a time.
READ, ROUND, BATCH = 10_000, 50_000, 1_000
#: How many rows are named in a report; the rest is counted.
NAMED = 200
#: How long a merge outside the final lock waits for somebody's lock. Below PostgreSQL's deadlock_timeout (1 s): nobody
#: else's transaction is chosen as the victim. MariaDB does not wait at all, since it chooses at once.
_PATIENCE = "100ms"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A schedule table: its kind, its primary key, the columns that are its value, and who refers to it."""

    using: str
    kind: str
    name: str
    pk: str
    value: tuple[str, ...]
    references: tuple[Reference, ...] = ()

    def quoted(self, *names: str) -> str:
        return expressions.quoted(self.using, *names)

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        with connections[self.using].cursor() as cursor:
            cursor.execute(sql, list(params) or None)
            return list(cursor.fetchall())

    def run(self, sql: str) -> int:
        with connections[self.using].cursor() as cursor:
            cursor.execute(sql)
            return int(cursor.rowcount)

    def grouped(self, where: str = "") -> str:
        """SQL for (id, oldest): each row with the oldest one of its value, by the database's own equality.

        Not MIN(): MariaDB's time for that grows with the square of a group's size.
        """
        pk, value = self.quoted(self.pk), self.quoted(*self.value)
        return (
            f"SELECT {pk} AS id, FIRST_VALUE({pk}) OVER (PARTITION BY {value} ORDER BY {pk}) AS oldest "
            f"FROM {self.quoted(self.name)}{where}"
        )


@dataclass
class Report:
    """What was done to one table, or would be."""

    respelled: int = 0
    merged: int = 0
    #: How many rows each kept row stands for besides itself.
    kept: Counter[int] = field(default_factory=Counter)
    #: How many rows of each referring column were pointed elsewhere.
    repointed: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        """Count another one in."""
        self.respelled += other.respelled
        self.merged += other.merged
        self.kept += other.kept
        self.repointed += other.repointed


# -- one spelling --------------------------------------------------------------------------------------------------


def respell(table: Table, report: Report, after: int, tell: Tell) -> int:
    """Give the rows that follow `after` the one spelling of their values. Returns the last key that was seen."""
    columns, spell = SPELLED[table.kind]
    if table.kind == "clocked" and connections[table.using].vendor != "sqlite":
        return after
    pk, shown = table.quoted(table.pk), as_text(table, columns)
    sql = f"SELECT {pk}, {shown} FROM {table.quoted(table.name)} WHERE {pk} > %s ORDER BY {pk} LIMIT {READ}"
    while rows := table.rows(sql, [after]):
        wrong = [key for key, *values in rows if spell(tuple(values)) != tuple(values)]
        if wrong:
            report.respelled += transactions.retrying(table.using, lambda wrong=wrong: _respell(table, wrong))  # type: ignore[misc]
        after = rows[-1][0]
        tell(f"{table.kind}: spelling, up to row {after}")
    return after


def _respell(table: Table, keys: Sequence[int]) -> int:
    columns, spell = SPELLED[table.kind]
    pk, kinds = table.quoted(table.pk), dict.fromkeys(columns, "text")
    sql = f"SELECT {pk}, {as_text(table, columns)} FROM {table.quoted(table.name)} WHERE {pk} IN ({_list(keys)})"
    lock = "" if connections[table.using].vendor == "sqlite" else f" ORDER BY {pk} FOR UPDATE"
    with transactions.short_transaction(table.using):
        _hurry(table)
        with _impatient(table.using):
            rows = [(key, *spell(tuple(values))) for key, *values in table.rows(sql + lock)]
        upserts.update_rows(table.using, table.name, [table.pk], kinds, rows)
        return len(rows)


def as_text(table: Table, columns: Sequence[str]) -> str:
    """SQL for the columns, each as the text that is stored."""
    if connections[table.using].vendor != "sqlite":
        return table.quoted(*columns)
    return ", ".join(f"CAST({table.quoted(name)} AS TEXT)" for name in columns)


# -- one row -------------------------------------------------------------------------------------------------------


def duplicates(table: Table, limit: int, where: str = "") -> list[tuple[int, int]]:
    """(duplicate, the oldest row of its value), at most `limit` of them."""
    sql = f"SELECT id, oldest FROM ({table.grouped(where)}) x WHERE id <> oldest ORDER BY oldest, id LIMIT {limit}"
    return [(int(key), int(oldest)) for key, oldest in table.rows(sql)]


def merge_most(table: Table, report: Report, tell: Tell) -> None:
    """Merge in small transactions, while everybody goes on writing. What somebody holds is left for later."""
    again = 3
    while found := duplicates(table, ROUND):
        before = report.merged
        for start in range(0, len(found), BATCH):
            report.add(_batch(table, found[start : start + BATCH]))
            tell(f"{table.kind}: {report.merged} duplicates merged")
        again -= len(found) < ROUND
        if len(found) < BATCH or not again or report.merged == before:
            return


def _batch(table: Table, found: Sequence[tuple[int, int]]) -> Report:
    keys = sorted({key for pair in found for key in pair})
    try:
        with transactions.short_transaction(table.using):
            _hurry(table)
            mine = _lock(table, keys)
            with _impatient(table.using):  # not before: MariaDB 10.11 then fails in SKIP LOCKED, with error 1180
                return merge(table, mine)
    except DatabaseError as error:
        if not transactions.retryable(error) or transactions.in_transaction(table.using):
            raise
        return Report()


def _lock(table: Table, keys: Sequence[int]) -> Sequence[int]:
    """Lock these rows, and so keep new references to them out. Returns those that nobody else holds."""
    if connections[table.using].vendor == "sqlite":
        return keys
    pk = table.quoted(table.pk)
    sql = f"SELECT {pk} FROM {table.quoted(table.name)} WHERE {pk} IN ({_list(keys)}) ORDER BY {pk} FOR UPDATE"
    return [int(key) for (key,) in table.rows(f"{sql} SKIP LOCKED")]


def merge(table: Table, keys: Sequence[int] | None = None) -> Report:
    """Merge the duplicates among the rows `keys`, which the caller has locked (None: among all of the table)."""
    report = Report()
    if keys is not None and len(keys) < 2:
        return report
    where = "" if keys is None else f" WHERE {table.quoted(table.pk)} IN ({_list(keys)})"
    while found := duplicates(table, BATCH, where):
        for one in table.references:
            report.repointed[one.name] += _repoint(table, one, found)
        dropped = [key for key, _ in found]
        table.run(f"DELETE FROM {table.quoted(table.name)} WHERE {table.quoted(table.pk)} IN ({_list(dropped)})")
        report.merged += len(dropped)
        report.kept.update(oldest for _, oldest in found)
    return report


def _repoint(table: Table, reference: Reference, found: Sequence[tuple[int, int]]) -> int:
    column, quote = table.quoted(reference.column), "'" if reference.as_text else ""
    target, kind = f"{reference.table}.{column}", _of_ours(table, reference, reference.table)
    if connections[table.using].vendor == "mysql":
        pairs = " UNION ALL ".join(f"SELECT {quote}{key}{quote} AS id, {oldest} AS oldest" for key, oldest in found)
        same = f"{target} = v.id"
        if reference.as_text:
            same = " = ".join(expressions.plain_text(table.using, one) for one in (target, "v.id"))
        return table.run(f"UPDATE {reference.table} JOIN ({pairs}) v ON {same}{kind} SET {target} = v.oldest")
    pairs = ", ".join(f"({quote}{key}{quote}, {quote}{oldest}{quote})" for key, oldest in found)
    return table.run(
        f"UPDATE {reference.table} SET {column} = v.column2 FROM (VALUES {pairs}) AS v WHERE {target} = v.column1{kind}"
    )


def _of_ours(table: Table, reference: Reference, alias: str) -> str:
    """SQL that leaves only rows that mean our table, to follow a condition; empty where all do."""
    if not reference.kind_column:
        return ""
    return f" AND {alias}.{table.quoted(reference.kind_column)} IN ({_list(reference.kinds)})"


def _joined(table: Table, reference: Reference) -> str:
    """SQL for "m.id is what r refers to"."""
    column, key = f"r.{table.quoted(reference.column)}", "m.id"
    if reference.as_text:
        key = expressions.plain_text(table.using, expressions.text(table.using, key))
        column = expressions.plain_text(table.using, column)
    return f"{key} = {column}{_of_ours(table, reference, 'r')}"


def _hurry(table: Table) -> None:
    if connections[table.using].vendor == "postgresql":
        table.run(f"SET LOCAL lock_timeout = '{_PATIENCE}'")


@contextmanager
def _impatient(using: str) -> Iterator[None]:
    """No waiting for row locks on MariaDB (on MySQL, a second): a setting of the session, put back afterwards."""
    if connections[using].vendor != "mysql":
        yield
        return
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT @@innodb_lock_wait_timeout")
        before = int(cursor.fetchone()[0])
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 0")
        try:
            yield
        finally:
            cursor.execute(f"SET SESSION innodb_lock_wait_timeout = {before}")


# -- before anything is changed ------------------------------------------------------------------------------------


def collisions(table: Table) -> Iterator[str]:
    """Groups that cannot be merged, one line each, with the choices."""
    for one in table.references:
        found: dict[int, str] = {}
        if one.identity:
            found |= dict.fromkeys(_children(table, one), "holds parts of rows that would be dropped")
        for key in one.keys:
            found |= dict.fromkeys(_broken(table, one, key) - found.keys(), "may hold each of them once")
        for oldest, why in sorted(found.items())[:NAMED]:
            members = table.rows(f"SELECT id FROM ({table.grouped()}) x WHERE oldest = {oldest} ORDER BY id LIMIT 20")
            keys = ", ".join(str(key) for (key,) in members)
            yield (
                f"{table.name}: the rows {keys} hold one value ({values(table, [oldest])[oldest]}) and cannot become "
                f"one, since {one.name} {why}. Delete rows of {one.name.rpartition('.')[0]}, point them at another "
                f"schedule, or give one of the {table.kind} rows another value; then migrate again."
            )
        if len(found) > NAMED:
            yield f"{table.name}: {len(found) - NAMED} groups more, for the same reason"


def _children(table: Table, one: Reference) -> set[int]:
    joined = f"{one.table} r JOIN ({table.grouped()}) m ON {_joined(table, one)}"
    sql = f"SELECT DISTINCT m.oldest FROM {joined} WHERE m.id <> m.oldest"
    return {int(oldest) for (oldest,) in table.rows(sql)}


def _broken(table: Table, one: Reference, key: UniqueKey) -> set[int]:
    column = table.quoted(one.column)
    parts = ["onebeat_oldest" if part == column else part for part in key.parts]
    condition = " AND ".join([f"({key.condition})"] * bool(key.condition) + [f"{part} IS NOT NULL" for part in parts])
    sql = (
        f"SELECT DISTINCT onebeat_oldest FROM (SELECT MIN(onebeat_oldest) AS onebeat_oldest FROM ("
        f"SELECT r.*, m.oldest AS onebeat_oldest FROM {one.table} r JOIN ({table.grouped()}) m "
        f"ON {_joined(table, one)}) x WHERE {condition} GROUP BY {', '.join(parts)} HAVING COUNT(*) > 1) y"
    )
    return {int(oldest) for (oldest,) in table.rows(sql)}


def values(table: Table, keys: Sequence[int]) -> dict[int, str]:
    """The values of these rows, as text for people."""
    if not keys:
        return {}
    pk = table.quoted(table.pk)
    rows = table.rows(
        f"SELECT {pk}, {as_text(table, table.value)} FROM {table.quoted(table.name)} WHERE {pk} IN ({_list(keys)})"
    )
    return {int(key): " ".join(map(str, value)) for key, *value in rows}


def foreseen(table: Table) -> Report:
    """What a merge of the table as it stands would do."""
    report = Report()
    grouped = f"SELECT oldest, COUNT(*) FROM ({table.grouped()}) x GROUP BY oldest HAVING COUNT(*) > 1"
    for oldest, size in table.rows(grouped):
        report.kept[int(oldest)] = int(size) - 1
        report.merged += int(size) - 1
    for one in table.references:
        ((count,),) = table.rows(
            f"SELECT COUNT(*) FROM {one.table} r JOIN ({table.grouped()}) m ON {_joined(table, one)} "
            "WHERE m.id <> m.oldest"
        )
        report.repointed[one.name] += count
    return report


def sharing(table: Table, keys: Sequence[int], tasks: str) -> dict[int, int]:
    """How many tasks there are to each of these rows and its duplicates; `tasks` is the tasks' table."""
    if not keys:
        return {}
    column = f"r.{table.quoted(f'{table.kind}_id')}"
    rows = table.rows(
        f"SELECT m.oldest, COUNT(*) FROM {table.quoted(tasks)} r JOIN ({table.grouped()}) m ON m.id = {column} "
        f"WHERE m.oldest IN ({_list(keys)}) GROUP BY m.oldest"
    )
    found = defaultdict(int, {int(key): int(count) for key, count in rows})
    return {key: found[key] for key in keys}


def _list(keys: Sequence[int]) -> str:
    return ", ".join(str(int(key)) for key in keys)
