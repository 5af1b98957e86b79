"""Phrases of SQL that look into rows: a word in several columns, the time between two. Each database has its own."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q


def holds(using: str, table: str, columns: Sequence[str], text: str) -> tuple[str, list[str]]:
    """SQL, with its parameters, for "one of these text columns holds `text`", in whatever case.

    The columns are joined and looked through once; one by one takes three times as long. Under PostgreSQL's rules of
    languages each row's case would be looked up letter by letter, which plain letters do not need.
    """
    link = connections[using]
    names = [f"{quoted(using, table)}.{quoted(using, name)}" for name in columns]
    pattern = f"%{link.ops.prep_for_like_query(text)}%"
    if link.vendor == "mysql":
        return f"CONCAT_WS('\n', {', '.join(names)}) LIKE %s", [pattern]
    between = [f"'\n' || {name}" for name in names[1:]]
    joined = f"({' || '.join([names[0], *between])})"
    if link.vendor == "sqlite":
        return f"{joined} LIKE %s ESCAPE '\\'", [pattern]
    rules = ' COLLATE "C"' if text.isascii() else ""
    return f"{joined}{rules} ILIKE %s", [pattern]


def seconds_between(using: str, first: str, last: str) -> str:
    """SQL for how many seconds lie between two instants; NULL if one of them is."""
    vendor = connections[using].vendor
    if vendor == "mysql":
        return f"TIMESTAMPDIFF(SECOND, {first}, {last})"
    if vendor == "sqlite":
        return f"ROUND((julianday({last}) - julianday({first})) * 86400, 3)"
    return f"EXTRACT(EPOCH FROM ({last} - {first}))"


def folds_texts(using: str) -> bool:
    """Whether this database may take two different texts for the same: by letters' case, accents, spaces at the end."""
    return connections[using].vendor == "mysql"


def exact_type(connection: BaseDatabaseWrapper, length: int) -> str | None:
    """The type of a column of texts that are the same only if every byte is; None: the usual one, which is so."""
    return f"varbinary({4 * length})" if connection.vendor == "mysql" else None


def same_text(using: str, column: str, value: str) -> Q:
    """The condition that a text is this one, byte by byte."""
    same = Q(**{column: value})
    if not folds_texts(using):
        return same
    # The first finds the few by the index; these two compare letter by letter, the second also the spaces at the end.
    return same & Q(**{f"{column}__startswith": value}) & Q(**{f"{column}__endswith": value})


def quoted(using: str, *names: str) -> str:
    """Names quoted for this database, separated by commas."""
    return ", ".join(map(connections[using].ops.quote_name, names))


def plain_text(using: str, value: str) -> str:
    """SQL for a text whose collation agrees with any other so treated, and which differs when a letter's case does.

    On MySQL tables of different age have different collations, and comparing them is an error.
    """
    return f"CONVERT({value} USING utf8mb4) COLLATE utf8mb4_bin" if connections[using].vendor == "mysql" else value


def distinct(using: str, left: str, right: str) -> str:
    """SQL for "left and right differ", where NULL equals NULL."""
    vendor = connections[using].vendor
    if vendor == "mysql":
        return f"NOT ({left} <=> {right})"
    return f"{left} IS NOT {right}" if vendor == "sqlite" else f"{left} IS DISTINCT FROM {right}"


def text(using: str, number: str) -> str:
    """SQL for a whole number as text."""
    return f"CAST({number} AS {'CHAR' if connections[using].vendor == 'mysql' else 'TEXT'})"


def hexadecimal(using: str, number: str) -> str:
    """SQL for a whole number as the 32 hexadecimal digits, in small letters, of the UUID that has its value."""
    vendor = connections[using].vendor
    if vendor == "sqlite":
        return f"printf(char(37) || '032x', {number})"  # a % would be taken for a parameter's
    return f"LPAD(LOWER(HEX({number})), 32, '0')" if vendor == "mysql" else f"LPAD(TO_HEX({number}), 32, '0')"


def whole(using: str, number: str) -> str:
    """SQL for a number rounded to a whole one, as text."""
    kind = "SIGNED" if connections[using].vendor == "mysql" else "BIGINT"
    return text(using, f"CAST(ROUND({number}) AS {kind})")


def concat(using: str, *parts: str) -> str:
    """SQL for texts joined together; NULL when one of them is."""
    if connections[using].vendor == "mysql":
        return f"CONCAT({', '.join(parts)})"
    return "(" + " || ".join(parts) + ")"
