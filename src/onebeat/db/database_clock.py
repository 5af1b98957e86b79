"""The database's present instant. Nothing is ever decided by a host's clock, except on SQLite, which has no other."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connections

from onebeat.core import clock
from onebeat.db.utc_columns import from_column, to_column

_CLOCK = {
    "postgresql": "clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "UTC_TIMESTAMP(6)",
}


def _given(using: str) -> datetime | None:
    """The present instant where the database is not to be asked: SQLite has no clock but the host's, and a test may
    give another; None: ask.
    """
    instant = clock.database_now()
    return clock.host_now() if instant is None and connections[using].vendor not in _CLOCK else instant


def clock_sql(using: str) -> tuple[str, list[Any]]:
    """A SQL expression for the database's present instant (SQLite: this host's), with its parameters.

    The real clock and never the start of the transaction.
    """
    vendor, instant = connections[using].vendor, _given(using)
    return (_CLOCK[vendor], []) if instant is None else ("%s", [to_column(vendor, instant)])


def now(using: str) -> datetime:
    """The present instant by the database's clock."""
    instant = _given(using)
    if instant is not None:
        return instant
    sql, params = clock_sql(using)
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        instant = from_column(cursor.fetchone()[0])
    assert instant is not None
    return instant
