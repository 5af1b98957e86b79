"""A second connection to the same database, and isolation levels. For code that runs in other processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.scratch import Scratch

#: psycopg's numbers for the levels, in JSON.
POSTGRESQL = {"repeatable read": 3, "serializable": 4}


def with_options(database: Scratch, **options: Any) -> dict[str, str]:
    """The environment of a child process whose connections to the database have these OPTIONS."""
    settings = database.settings
    return {"ONEBEAT_TEST_DB": json.dumps({**settings, "OPTIONS": {**settings["OPTIONS"], **options}})}


def with_isolation(database: Scratch, level: str) -> dict[str, str]:
    """The same with an isolation level: "repeatable read" or "serializable"."""
    return with_options(database, isolation_level=POSTGRESQL[level] if database.vendor == "postgresql" else level)


def other() -> str:
    """The alias of a second connection to the default database."""
    from django.db import connections

    connections.settings.setdefault("other", dict(connections.settings["default"]))  # type: ignore[attr-defined]
    return "other"


@contextmanager
def impatient(using: str) -> Iterator[None]:
    """A transaction in which a statement that has to wait for another one's lock fails, after two seconds."""
    from django.db import connections, transaction

    with transaction.atomic(using=using), connections[using].cursor() as cursor:
        postgresql = connections[using].vendor == "postgresql"
        cursor.execute("SET LOCAL lock_timeout = 2000" if postgresql else "SET innodb_lock_wait_timeout = 2")
        yield


def sqlstate(error: BaseException | None) -> str:
    """The database's own code for an error: a SQLSTATE, or MySQL's number as text."""
    cause = error.__cause__ if error is not None else None
    return str(getattr(cause, "sqlstate", None) or (cause.args[0] if cause is not None and cause.args else ""))
