"""`onebeat import` run in this process, and sources for it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import CommandError, call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from tests import services
from tests.scratch import Scratch, allowed
from tests.takeover.old import Old

ELSEWHERE = "elsewhere"


def imported(*args: str) -> tuple[int, str]:
    """Exit code and output of `onebeat import`; after a failure the reason is its last line."""
    told, code = io.StringIO(), 0
    try:
        call_command("onebeat", "import", *args, stdout=told, stderr=told)
    except CommandError as error:
        told.write(str(error))
        code = error.returncode
    return code, told.getvalue()


def report(*args: str) -> dict[str, Any]:
    """The same with `--json`: the object that was printed, with the exit code in it, and its rows by name."""
    code, text = imported(*args, "--json")
    found, _ = json.JSONDecoder().raw_decode(text)
    rows = {row["name"]: row for row in found["rows"]}
    assert len(rows) == len(found["rows"])
    return {**found, "code": code, "rows": rows}


def outcomes(*args: str) -> dict[str, str]:
    """What became of each row."""
    return {name: row["outcome"] for name, row in report(*args)["rows"].items()}


@contextmanager
def elsewhere(migration: str) -> Iterator[Old]:
    """A second database of the default one's kind under the alias ELSEWHERE, at a migration of django-celery-beat's."""
    given = os.environ.get("ONEBEAT_TEST_DB") or "sqlite"
    with Scratch.open(services.database(given)) as scratch:
        connections.databases[ELSEWHERE] = connections.configure_settings({"default": {}, ELSEWHERE: scratch.settings})[
            ELSEWHERE
        ]
        try:
            MigrationExecutor(allowed(connections[ELSEWHERE])).migrate([("django_celery_beat", migration)])
            yield Old(scratch)
        finally:
            connections[ELSEWHERE].close()
            del connections[ELSEWHERE]
            del connections.databases[ELSEWHERE]
