"""What is remembered about tables: that they are there, and never that they are not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from onebeat.db import schema
from onebeat.models import Change, IntervalSchedule, PeriodicTask, PeriodicTasks, change_hints

pytestmark = pytest.mark.django_db


def test_a_table_that_is_there_costs_one_look(django_assert_num_queries: Any) -> None:
    schema.known().migrate_ended()
    for queries in (1, 0, 0):
        with django_assert_num_queries(queries):
            assert schema.there("default", change_hints.TABLE)


def test_one_that_is_not_is_looked_for_each_time(django_assert_num_queries: Any) -> None:
    for _ in range(2):
        with django_assert_num_queries(1):
            assert not schema.there("default", "onebeat_nothing")


def test_nothing_is_remembered_while_migrate_runs(django_assert_num_queries: Any) -> None:
    schema.there("default", change_hints.TABLE)
    schema.known().migrate_begins()
    try:
        for _ in range(2):
            with django_assert_num_queries(1):
                assert schema.there("default", change_hints.TABLE)
    finally:
        schema.known().migrate_ended()


def test_a_table_that_comes_and_goes_in_a_migration_costs_no_transaction() -> None:
    """A project's own migration that uses the real models, before ours, after them, and on the way back."""
    if not connection.features.can_rollback_ddl:
        pytest.skip("tables cannot be put back by a rollback")
    interval = IntervalSchedule.objects.create(every=1, period="hours")
    schema.known().migrate_begins()
    try:
        PeriodicTask.objects.create(name="with", task="t", interval=interval)
        assert Change.objects.count() == 1
        assert not PeriodicTasks.objects.exists()
        with connection.cursor() as cursor:
            for table in ("onebeat_change", "onebeat_taskoptions"):
                cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_gone")
        task = PeriodicTask.objects.create(name="without", task="t", interval=interval)
        assert PeriodicTasks.objects.exists()
        task.delete()
        assert PeriodicTask.objects.count() == 1
    finally:
        schema.known().migrate_ended()


def test_what_a_scheduler_waits_for_is_named() -> None:
    assert schema.lacking("default") == []
    if not connection.features.can_rollback_ddl:
        pytest.skip("tables cannot be put back by a rollback")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE onebeat_fact RENAME TO onebeat_fiction")
        cursor.execute("ALTER TABLE onebeat_beat RENAME COLUMN lag_ms TO lag")
    assert sorted(schema.lacking("default")) == ["onebeat_beat.lag_ms", "onebeat_fact"]
