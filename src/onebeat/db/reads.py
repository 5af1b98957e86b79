"""Many rows or many keys in one statement, with as few parameters as the database allows.

PostgreSQL's driver looks at each placeholder of a statement and binds on the client: for a batch of rows that took
longer than the database needed. There a batch is one parameter, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Lookup, Q, QuerySet

from onebeat.db.bulk_rows import parts, recordset
from onebeat.db.expressions import quoted

Row = Sequence[Any]


def array(keys: Iterable[int]) -> str:
    """Whole numbers as PostgreSQL writes an array of them."""
    return "{" + ",".join(map(str, keys)) + "}"


def among(using: str, field: str, keys: Iterable[int]) -> object:
    """The condition that `field`, a whole number, is one of `keys`; for `filter()`."""
    if connections[using].vendor == "postgresql":
        return _Among(F(field), array(keys))
    return Q(**{f"{field}__in": list(keys)})


def has_arrays(using: str) -> bool:
    """Whether any number of values is one parameter here."""
    return connections[using].vendor == "postgresql"


def one_of(using: str, field: str, values: Iterable[Any]) -> Any:
    """The condition that `field` is one of `values`, of whatever type; for `filter()`."""
    return _OneOf(F(field), list(values)) if has_arrays(using) else Q(**{f"{field}__in": list(values)})


def among_sql(using: str, column: str, keys: Iterable[int]) -> tuple[str, list[Any]]:
    """The same as SQL with its parameters, for a column that holds 64 bits."""
    link = connections[using]
    name = link.ops.quote_name(column)
    if link.vendor == "postgresql":
        return f"{name} = ANY (%s::bigint[])", [array(keys)]
    known = list(keys)
    return f"{name} IN ({', '.join(['%s'] * len(known)) or 'NULL'})", known


class Lock(Enum):
    """Whether rows that are read are locked until the transaction ends; those that somebody holds are waited for, or
    left out. SQLite locks its whole file.
    """

    NONE = ""
    WAIT = " FOR UPDATE"
    SKIP = " FOR UPDATE SKIP LOCKED"


def by_keys(
    using: str,
    table: str,
    key: Mapping[str, str],
    keys: Sequence[Row],
    columns: Iterable[str],
    lock: Lock = Lock.NONE,
) -> Iterator[Row]:
    """The `columns` of the rows with these keys, which are parameters for the columns of `key`, a unique one.

    `key` maps each column to its PostgreSQL type.
    """
    link = connections[using]
    tail = "" if link.vendor == "sqlite" else lock.value
    chosen, target = quoted(using, *columns), quoted(using, table)
    with link.cursor() as cursor:
        if link.vendor == "postgresql":
            source, param = recordset(link, key, keys)
            sql = f"SELECT {chosen} FROM {target} JOIN {source} USING ({quoted(using, *key)})"
            cursor.execute(sql + tail.replace("UPDATE", f"UPDATE OF {target}"), [param])
            yield from cursor.fetchall()
            return
        one = " AND ".join(f"{quoted(using, name)} = %s" for name in key)
        for part in parts(link, keys, len(key)):
            cursor.execute(
                f"SELECT {chosen} FROM {target} WHERE {' OR '.join([f'({one})'] * len(part))}{tail}",
                [value for row in part for value in row],
            )
            yield from cursor.fetchall()


def plain(using: str, rows: QuerySet[Any, Any]) -> Iterable[Row]:
    """What `rows`, a `values_list()`, gives; on PostgreSQL as its driver has it, where UTC columns are naive.

    The ORM's own way over each row and each value takes several times as long as reading them.
    """
    if connections[using].vendor != "postgresql":
        return rows
    try:
        sql, params = rows.query.get_compiler(using).as_sql()
    except EmptyResultSet:  # a condition that no row can meet
        return []
    return _fetched(using, sql, params)


def prepared(using: str, name: str, values: Sequence[Any], build: Callable[[], QuerySet[Any, Any]]) -> Iterable[Row]:
    """As `plain(using, build())`, where calls under one `name` differ in `values` alone: the statement's parameters, in
    their order.

    On PostgreSQL its SQL is made once for each connection: for a few rows, making it takes longer than running it.
    """
    link = connections[using]
    if link.vendor != "postgresql":
        return build()
    statements = made(link)
    if name not in statements:
        try:
            sql, params = build().query.get_compiler(using).as_sql()
        except EmptyResultSet:
            return []
        if list(params) != list(values):  # this Django writes it in another way
            return _fetched(using, sql, params)
        statements[name] = sql
    return _fetched(using, statements[name], values)


def made(link: BaseDatabaseWrapper) -> dict[str, str]:
    """The SQL of the `prepared` statements, by name. The connection keeps it and it goes with it."""
    found: dict[str, str] = link.__dict__.setdefault("onebeat_statements", {})
    return found


def _fetched(using: str, sql: str, params: Sequence[Any]) -> list[Row]:
    with connections[using].cursor() as cursor:
        # Django reads aware instants in Python, to put a zone of its own in them; the driver's reader is C.
        adapters: Any = getattr(cursor, "adapters", None)
        if adapters is not None and settings.USE_TZ:
            adapters.register_loader("timestamptz", _reader())
        cursor.execute(sql, params)
        found: list[Row] = cursor.fetchall()
        return found


@cache
def _reader() -> object:
    import psycopg

    return psycopg.adapters.get_loader(psycopg.adapters.types["timestamptz"].oid, psycopg.pq.Format.TEXT)


class _Among(Lookup):
    """`field = ANY (array)`, the array as PostgreSQL writes it and of the field's own type: only then is it hashed,
    where the table is read as a whole (0.9 ms instead of 65 for 500 keys in 10,000 rows).
    """

    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        if self.rhs == array(()):
            raise EmptyResultSet  # as Django's own `__in`: nothing is asked
        sql, params = self.process_lhs(compiler, connection)
        kind = self.lhs.output_field.db_type(connection)
        return f"{sql} = ANY (%s::{kind}[])", [*params, self.rhs]


class _OneOf(_Among):
    """The same for values that the driver writes as an array."""
