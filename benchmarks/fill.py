"""Tasks by plain SQL: a million of them through any ORM would take longer than all that is measured."""

from __future__ import annotations

from typing import Any

_TASK = (
    "INSERT INTO django_celery_beat_periodictask (name, task, {kind}_id, args, kwargs, headers, enabled, one_off,"
    " total_run_count, date_changed, description, last_run_at) "
    "SELECT 'task ' || n, 'benchmarks.nothing', {schedule}, {args}, '{{}}', '{{}}', true, {one_off}, 0, now(), '',"
    " {last} FROM generate_series({start}, {start} + %s - 1) n"
)
#: What onebeat's planner writes for the same tasks; the sweep of a scheduler finds nothing to change in it.
_STATE = (
    "INSERT INTO onebeat_taskstate (task_id, uid, task_name, due_at, wake_at, anchor, version, quarantine, enabled,"
    " one_off, {kind}, rule, clocked_time) SELECT p.id, {uid}, p.name, {due}, {due}, {anchor}, 0, '', p.enabled,"
    " p.one_off, p.{kind}_id, {rule}, {clocked} FROM django_celery_beat_periodictask p {join} WHERE p.id >= {start}"
)
#: Any number that no other task has.
_UID = "('x' || left(md5(random()::text || p.id), 16))::bit(64)::bigint >> 1 & 9223372036854775807"
_FACT = "INSERT INTO django_celery_beat_intervalschedule (every, period) VALUES (1, 'days') RETURNING id"

_OLD = (
    "INSERT INTO onebeat_occurrence (task_id, task_uid, task_name, due_at, run, state, reason, detail, celery_task_id,"
    " claims, decided_at, sent_at) SELECT 1000000000 + n % 1000, n % 1000, 'task ' || n % 1000, at, 0, 'sent', '',"
    " '', gen_random_uuid(), 1, at, at FROM (SELECT n, (now() AT TIME ZONE 'UTC') - interval '10 days'"
    " - ({count} - n / 1000) * interval '1 second' AS at FROM generate_series(1, {count}) n) rows"
)


def _plan(cursor: Any, **parts: Any) -> None:
    cursor.execute("SELECT to_regclass('onebeat_taskstate')")
    if cursor.fetchone()[0] is not None:
        cursor.execute(_STATE.format(uid=_UID, **parts))


def _next(cursor: Any) -> int:
    cursor.execute("SELECT COALESCE(max(id), 0) + 1 FROM django_celery_beat_periodictask")
    return int(cursor.fetchone()[0])


def daily(connection: Any, count: int, due: float) -> None:
    """`count` tasks, each due once a day and next at `due` (seconds of the epoch)."""
    with connection.cursor() as cursor:
        start = _next(cursor)
        cursor.execute("SELECT id FROM django_celery_beat_intervalschedule WHERE every = 1 AND period = 'days'")
        row = cursor.fetchone()
        if row is None:
            cursor.execute(_FACT)
            row = cursor.fetchone()
        at = f"to_timestamp({due})"
        cursor.execute(
            _TASK.format(
                kind="interval",
                schedule=row[0],
                args="'[0]'",
                one_off="false",
                last=f"{at} - interval '1 day'",
                start=start,
            ),
            [count],
        )
        utc = f"({at} AT TIME ZONE 'UTC')"
        _plan(
            cursor, kind="interval", due=utc, anchor=f"{utc} - interval '1 day'", rule="'1 days'", clocked="NULL",
            join="", start=start,
        )  # fmt: skip
        _settle(cursor)


def one_offs(connection: Any, count: int, start: float, rate: float) -> None:
    """`count` one-off tasks, `rate` of them per second from `start` on; each carries its time as its argument."""
    with connection.cursor() as cursor:
        key = _next(cursor)
        at = f"to_timestamp({start} + (n - {key}) / {rate}::float8)"
        cursor.execute(
            f"INSERT INTO django_celery_beat_clockedschedule (clocked_time) SELECT {at}"
            f" FROM generate_series({key}, {key} + %s - 1) n ORDER BY n RETURNING id",
            [count],
        )
        first = cursor.fetchone()[0]
        cursor.execute(
            _TASK.format(
                kind="clocked",
                schedule=f"{first} + n - {key}",
                args=f"'[' || extract(epoch from {at}) || ']'",
                one_off="true",
                last="NULL",
                start=key,
            ),
            [count],
        )
        _plan(
            cursor,
            kind="clocked",
            due="k.clocked_time AT TIME ZONE 'UTC'",
            anchor="now() AT TIME ZONE 'UTC'",
            rule="''",
            clocked="k.clocked_time",
            join="JOIN django_celery_beat_clockedschedule k ON k.id = p.clocked_id",
            start=key,
        )
        _settle(cursor)


def routed(connection: Any, exchange: str) -> None:
    """Send every task through this exchange."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE django_celery_beat_periodictask SET exchange = %s, routing_key = 'bench.nothing'", [exchange]
        )
        cursor.execute("VACUUM ANALYZE django_celery_beat_periodictask")


def old(connection: Any, count: int) -> None:
    """`count` occurrences that were sent more than ten days ago, of a thousand tasks that are gone."""
    with connection.cursor() as cursor:
        cursor.execute(_OLD.format(count=count))
        _settle(cursor)


def _settle(cursor: Any) -> None:
    """As autovacuum would have left the tables."""
    cursor.execute("ANALYZE")
