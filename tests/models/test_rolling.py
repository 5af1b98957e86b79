"""An older version at work beside this one, on the tables as this one has them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.db import connection

from onebeat.db.utc_columns import to_column
from onebeat.models import Beat, Change, ClaimedBatch, Occurrence, PeriodicTask, TaskOptions, TaskState
from tests.engine.kit import Bench, at, due, ledger, sql, task

#: What the first version names when it adds a row: a frozen list, never to be brought up to date.
FIRST = {
    "onebeat_batch": "token holder lease_until",
    "onebeat_beat": "host pid version started_at seen_at able_since lag_ms skew_ms stopped_at",
    "onebeat_change": "kind ref at",
    "onebeat_fact": "name value",
    "onebeat_occurrence": "task_id task_uid task_name due_at run last_due_at state reason detail celery_task_id "
    "claim_token claims beat_id decided_at sent_at",
    "onebeat_taskoptions": "task_id missed grace_seconds jitter_seconds paused paused_until paused_why paused_by",
    "onebeat_taskstate": "task_id version uid task_name due_at wake_at anchor water_mark quarantine enabled one_off "
    "interval crontab solar clocked rule clocked_time start_time expires",
}


def add(table: str, **values: Any) -> None:
    """Add a row as the first version does: with each of its columns, and no other."""
    names = FIRST[table].split()
    assert values.keys() <= set(names)
    vendor = connection.vendor
    row = [values.get(name) for name in names]
    row = [to_column(vendor, value) if isinstance(value, datetime) else value for value in row]
    columns = ", ".join(map(connection.ops.quote_name, names))
    sql(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(names))})", *row)


def test_rows_of_the_first_version_are_taken_and_worked_with(bench: Bench) -> None:
    one = task()
    Change.objects.all().delete()
    add("onebeat_beat", host="old", pid=1, version="0.1.0", started_at=at(0), seen_at=at(0), lag_ms=0, skew_ms=0)
    add("onebeat_change", kind="task", ref=one.pk + 1000, at=at(0))
    add("onebeat_fact", name="something", value="x")
    plan = {"due_at": at(60), "wake_at": at(60), "anchor": at(0), "quarantine": "", "enabled": True, "one_off": False}
    add(
        "onebeat_taskstate",
        task_id=one.pk,
        version=0,
        uid=5,
        task_name="t",
        interval=one.interval_id,
        rule="60 seconds",
        **plan,
    )
    policy = {"missed": "latest", "jitter_seconds": 0, "paused": False, "paused_why": "", "paused_by": ""}
    add("onebeat_taskoptions", task_id=one.pk, **policy)
    claimed = {"state": "claimed", "reason": "", "detail": "", "claim_token": 1, "claims": 1}
    add("onebeat_batch", token=1, holder=0, lease_until=at(30))
    identity = str(uuid.uuid4()) if connection.vendor == "postgresql" else uuid.uuid4().hex
    add(
        "onebeat_occurrence",
        task_id=one.pk,
        task_uid=5,
        task_name="t",
        due_at=at(0),
        run=0,
        celery_task_id=identity,
        **{"beat_id": Beat.objects.get(host="old").pk, "decided_at": at(0), **claimed},
    )
    bench.tick()
    assert due(one) == 60, "its plan is no reason to plan again"
    bench.work(62)
    assert bench.sent == [("t", 0), ("t", 60)]
    assert ledger(one) == [(0, "sent", ""), (60, "sent", "")]
    assert TaskOptions.objects.get(task=one).overlap == "allow"


def test_each_column_that_came_later_has_a_value_in_the_database() -> None:
    """So that what an older version inserts is whole, whatever its rows say nothing of."""
    for model in (Beat, Change, ClaimedBatch, Occurrence, TaskOptions, TaskState):
        old = FIRST[model._meta.db_table].split()
        for field in model._meta.concrete_fields:
            if field.column not in old and not (field.primary_key and field.db_returning):
                assert field.null or field.has_db_default(), f"{model.__name__}.{field.name} needs null or db_default"


def test_people_s_tables_are_as_they_were() -> None:
    """django-celery-beat inserts into them after somebody goes back to it: they get no column of ours."""
    assert not [field.column for field in PeriodicTask._meta.concrete_fields if field.column.startswith("onebeat")]
