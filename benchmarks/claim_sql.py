"""The limit of claiming: due rows locked, recorded and moved on by plain SQL, 500 in one transaction."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_SETUP = (
    "DROP TABLE IF EXISTS bench_state, bench_ledger",
    "CREATE TABLE bench_state (task bigint PRIMARY KEY, wake_at timestamp, version bigint DEFAULT 0)",
    "CREATE TABLE bench_ledger (id bigserial PRIMARY KEY, task bigint, due_at timestamp, state text, token bigint,"
    " UNIQUE (task, due_at))",
    "INSERT INTO bench_state (task, wake_at) SELECT n, now() - interval '1 hour' FROM generate_series(1, {count}) n",
    "CREATE INDEX ON bench_state (wake_at)",
    "ANALYZE bench_state",
)
_CLAIM = (
    "SELECT task, wake_at FROM bench_state WHERE wake_at <= now() ORDER BY wake_at LIMIT 500 FOR UPDATE SKIP LOCKED"
)
_RECORD = (
    "INSERT INTO bench_ledger (task, due_at, state, token) SELECT *, 'claimed', %s FROM unnest(%s::bigint[],"
    " %s::timestamp[]) ON CONFLICT DO NOTHING"
)
_MOVE = (
    "UPDATE bench_state s SET wake_at = v.at, version = version + 1"
    " FROM unnest(%s::bigint[], %s::timestamp[]) v(id, at) WHERE s.task = v.id"
)


def claim(cursor: Any, token: int) -> int:
    """One batch. Returns its size."""
    from datetime import timedelta

    cursor.execute(_CLAIM)
    rows = cursor.fetchall()
    tasks, times = [row[0] for row in rows], [row[1] for row in rows]
    cursor.execute(_RECORD, [token, tasks, times])
    cursor.execute(_MOVE, [tasks, [at + timedelta(days=1, microseconds=task) for task, at in rows]])
    return len(rows)


def main() -> int:
    import django

    django.setup()
    from django.db import connection, transaction

    count = int(sys.argv[1])
    with connection.cursor() as cursor:
        for statement in _SETUP:
            cursor.execute(statement.format(count=count))
        begin, done, token = time.perf_counter(), 0, 0
        while True:
            token += 1
            with transaction.atomic():
                found = claim(cursor, token)
            if not found:
                break
            done += found
        print(json.dumps({"rate": done / (time.perf_counter() - begin)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
