"""Phrases of SQL that look into rows: a word in several columns, the time between two. Each database has its own."""

from __future__ import annotations

from collections.abc import Sequence

from onebeat.store import vendors


def holds(using: str, table: str, columns: Sequence[str], text: str) -> tuple[str, list[str]]:
    """SQL, with its parameters, for "one of these text columns holds `text`", in whatever case.

    The columns are joined and looked through once; one by one takes three times as long. Under PostgreSQL's rules of
    languages each row's case would be looked up letter by letter, which plain letters do not need.
    """
    link = vendors.connection(using)
    names = [f"{vendors.quoted(using, table)}.{vendors.quoted(using, name)}" for name in columns]
    pattern = f"%{link.ops.prep_for_like_query(text)}%"
    if link.vendor == "mysql":
        return f"CONCAT_WS('\n', {', '.join(names)}) LIKE %s", [pattern]
    between = [f"'\n' || {name}" for name in names[1:]]
    joined = f"({' || '.join([names[0], *between])})"
    if link.vendor == "sqlite":
        return f"{joined} LIKE %s ESCAPE '\\'", [pattern]
    rules = ' COLLATE "C"' if text.isascii() else ""
    return f"{joined}{rules} ILIKE %s", [pattern]


def seconds_between(vendor: str, first: str, last: str) -> str:
    """SQL for how many seconds lie between two instants; NULL if one of them is."""
    if vendor == "mysql":
        return f"TIMESTAMPDIFF(SECOND, {first}, {last})"
    if vendor == "sqlite":
        return f"ROUND((julianday({last}) - julianday({first})) * 86400, 3)"
    return f"EXTRACT(EPOCH FROM ({last} - {first}))"
