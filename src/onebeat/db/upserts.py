"""Inserts that may lose to another writer, and updates of many rows: one statement each where the database has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connections, models

from onebeat.db.bulk_rows import insertable, inserts, parts, recordset
from onebeat.db.expressions import quoted

Row = Sequence[Any]


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
    went in, as the driver has them; None: this database does not say which, and the reader asks afterwards (MySQL: it
    says that all did, of a table whose key it does not count up itself).

    `columns` may map each to its PostgreSQL type: then many rows are quicker there. `alike`: more columns, each with
    its PostgreSQL type and the value that all rows have. MySQL has no way to ignore one unique key alone, and INSERT
    IGNORE would hide other errors: the no-op update does. `named` False: any unique key counts, and it is no error if
    `unique` is none yet.
    """
    if not rows:
        return []
    link = connections[using]
    lose = f" ON CONFLICT{f' ({quoted(using, *unique)})' if named else ''} DO NOTHING"
    if link.vendor == "mysql":
        first = quoted(using, unique[0])
        # The number that is handed back says whether a row lost, where no column counts up by itself.
        lost = f"IF(LAST_INSERT_ID(1), {first}, {first})" if returning else first
        lose = f" ON DUPLICATE KEY UPDATE {first} = {lost}"
    tells, all_went_in = bool(returning) and link.vendor != "mysql", bool(returning) and link.vendor == "mysql"
    tail = f" RETURNING {quoted(using, *returning)}" if tells else ""
    inserted: list[Row] = []
    with link.cursor() as cursor:
        for sql, params in inserts(link, table, columns, rows, alike or {}):
            cursor.execute(sql + lose + tail, params)
            inserted += cursor.fetchall() if tells else ()
            all_went_in = all_went_in and not cursor.lastrowid
    if all_went_in:
        return [[row[list(columns).index(name)] for name in returning] for row in rows]
    return inserted if tells else None


def insert_for_keys(
    using: str, table: str, column: str, keys: Sequence[int], alike: Mapping[str, tuple[str, Sequence[Any]]]
) -> None:
    """Insert a row for each key, which goes into `column`. `alike`: the other columns, each with the SQL that gives its
    value in every row, and that SQL's parameters.
    """
    link = connections[using]
    into = f"INSERT INTO {quoted(using, table)} ({quoted(using, *alike, column)})"
    values = ", ".join(sql for sql, _ in alike.values())
    params = [value for _, given in alike.values() for value in given]
    with link.cursor() as cursor:
        if len(keys) > 50 and link.vendor == "postgresql":  # one parameter for all
            cursor.execute(f"{into} SELECT {values}, key FROM unnest(%s::bigint[]) AS v(key)", [*params, list(keys)])
            return
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            rows = ", ".join([f"({values}, %s)"] * len(part))
            cursor.execute(f"{into} VALUES {rows}", [value for key in part for value in (*params, key)])


def insert_instances(using: str, instances: Sequence[models.Model], unique: Sequence[str]) -> None:
    """Insert new instances of one model, without signals; one whose `unique` columns are taken is left out."""
    if instances:
        columns, values = insertable(using, instances)
        insert_or_lose(using, instances[0]._meta.db_table, columns, values, unique)


#: Added to the key of a row that was there before, since MySQL has one number to give both the key and that.
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
    link = connections[using]
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
    link, names = connections[using], list(columns)
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
    link = connections[using]
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
