"""What cannot be taken over stops `migrate` before any change and is named; `adopt --check` says so beforehand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.processes import run_python
from tests.takeover.old import CHECK, MIGRATE, PREFIX, Old, old, old_templates

__all__ = ["old", "old_templates"]

INTERVALS = f"{PREFIX}intervalschedule"
COLUMNS = {
    f"{PREFIX}intervalschedule": "id, every, period",
    f"{PREFIX}crontabschedule": "id, minute, hour, day_of_month, month_of_year, day_of_week, timezone",
    f"{PREFIX}clockedschedule": "id, clocked_time",
    f"{PREFIX}periodictask": "id, name, interval_id, crontab_id, clocked_id, date_changed",
}


def content(old: Old) -> dict[str, list[Any]]:
    return {table: old.run(f"SELECT {names} FROM {table} ORDER BY id") for table, names in COLUMNS.items()}


def refused(old: Old, *words: str) -> str:
    """Both `migrate` and `adopt --check` stop with these words, and nothing changes."""
    before, text = content(old), ""
    for command in (MIGRATE, CHECK):
        text = old.refused(command)
        assert not [word for word in words if word not in text], text
        assert content(old) == before
    assert not old.run("SELECT 1 FROM django_migrations WHERE name = '1002_onebeat_unique_interval'")
    return text


def table_of_others(old: Old, column: str, *more: str) -> None:
    parts = [column, *more, f"FOREIGN KEY (plan) REFERENCES {INTERVALS} (id)"]
    old.run(f"CREATE TABLE others (nr INTEGER PRIMARY KEY, owner INTEGER NOT NULL, {', '.join(parts)})")


def test_a_unique_column_that_points_at_two_rows_of_one_value_stops_it(old: Old) -> None:
    # The two are one value only when they are spelled alike.
    old.intervals((1, 5, "minutes"), (2, 5, "Minutes"), (3, 6, "minutes"), (4, 6, "minutes"))
    old.crontabs((1, "*", "*", "*", "*", "mon"), (2, "*", "*", "*", "*", "1"))
    table_of_others(old, "plan INTEGER NULL UNIQUE")
    old.run("INSERT INTO others VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, NULL), (5, 1, NULL)")
    told = refused(old, "rows 1, 2 hold one value", "others.plan", "5 minutes", "Delete rows of others")
    assert "rows 3, 4" not in told
    old.run("DELETE FROM others WHERE nr = 1")
    old.migrate()
    assert dict(old.run("SELECT nr, plan FROM others")) == {2: 1, 3: 3, 4: None, 5: None}


def test_so_does_a_unique_key_of_several_columns(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"), (3, 6, "minutes"), (4, 6, "minutes"))
    table_of_others(old, "plan INTEGER NULL", "UNIQUE (plan, owner)")
    old.run("INSERT INTO others VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 2, 4)")
    refused(old, "rows 1, 2 hold one value", "others.plan")


def test_so_does_a_child_of_a_row_that_would_go(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"), (3, 6, "minutes"), (4, 6, "minutes"))
    old.run(
        "CREATE TABLE child (intervalschedule_ptr_id INTEGER PRIMARY KEY, note VARCHAR(9), "
        f"FOREIGN KEY (intervalschedule_ptr_id) REFERENCES {INTERVALS} (id))"
    )
    old.run("INSERT INTO child VALUES (2, 'a'), (3, 'b')")
    refused(old, "rows 1, 2 hold one value", "child.intervalschedule_ptr_id")
    old.run("UPDATE child SET intervalschedule_ptr_id = 1 WHERE note = 'a'")
    old.migrate()
    assert old.keys("intervalschedule") == [1, 3]


def test_on_mysql_so_do_rows_that_only_the_database_takes_for_one(old: Old) -> None:
    if old.link.vendor != "mysql":
        pytest.skip("texts that end in a space are others there")
    rows = [("*", "*"), ("* ", "*"), ("0 ", "*"), ("0", "*"), ("0", "FRI#l"), ("0", "fri#L")]
    old.crontabs(*((key, minute, "9", "*", "*", day) for key, (minute, day) in enumerate(rows, start=1)))
    assert "rows 3" not in refused(old, "the rows 1 and 2 hold one value", "Delete the spaces")
    old.run(f"DELETE FROM {PREFIX}crontabschedule WHERE id = 2")
    old.migrate()
    assert old.keys("crontabschedule") == [1, 3, 5]


def test_on_postgresql_a_unique_key_counts_where_it_holds(old: Old) -> None:
    if old.link.vendor != "postgresql":
        pytest.skip("keys with a condition, and tables of other schemas")
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"))
    old.run('CREATE SCHEMA "An other"')
    old.run(
        'CREATE TABLE "An other"."Some one" (nr int, "interval plan" int NOT NULL '
        f"REFERENCES {INTERVALS} DEFERRABLE INITIALLY DEFERRED, live bool)"
    )
    old.run('CREATE UNIQUE INDEX ON "An other"."Some one" ("interval plan") WHERE live')
    old.run('INSERT INTO "An other"."Some one" VALUES (1, 1, true), (2, 2, true)')
    refused(old, "rows 1, 2 hold one value", "An other.Some one.interval plan")
    old.run('UPDATE "An other"."Some one" SET live = false WHERE nr = 1')
    old.migrate()
    assert old.run('SELECT nr, "interval plan" FROM "An other"."Some one" ORDER BY nr') == [(1, 1), (2, 1)]


def test_a_column_that_nobody_here_would_fill_stops_it(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"))
    fill = " DEFAULT 0" if old.link.vendor == "sqlite" else ""
    old.run(f"ALTER TABLE {PREFIX}crontabschedule ADD COLUMN harmless INTEGER NULL")
    old.run(f"ALTER TABLE {PREFIX}periodictask ADD COLUMN tenant INTEGER NOT NULL{fill}")
    if old.link.vendor == "sqlite":
        # SQLite adds no such column to a table, but a fork's remade table may have it.
        old.run("PRAGMA writable_schema = ON")
        old.run(
            "UPDATE sqlite_master SET sql = replace(sql, 'tenant INTEGER NOT NULL DEFAULT 0', "
            f"'tenant INTEGER NOT NULL') WHERE name = '{PREFIX}periodictask'"
        )
        old.run("PRAGMA writable_schema = OFF")
    refused(old, f"{PREFIX}periodictask.tenant is NOT NULL without a default")


def test_check_tells_what_migrate_then_does(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "Minutes"), (3, 6, "minutes"))
    old.crontabs((1, "0", "0", "*", "*", "mon"), (2, "0", "0", "*", "*", "1"), (3, "0", "0", "*", "*", "fri#L"))
    old.task("a", interval_id=1)
    old.task("b", interval_id=2)
    old.task("c", crontab_id=2)
    before = content(old)
    told, text, nothing = old.call((*CHECK, "--json"), CHECK, ("onebeat", "adopt"))
    assert content(old) == before
    foreseen = json.loads(told)
    assert "interval: 1 duplicates of 1 rows would be merged, 1 rows would be respelled" in text
    assert "interval 1 (5 minutes) stands for 1 more, used by 2 tasks" in text
    assert "fri#L" in text
    assert nothing.strip() == "nothing to merge"
    done = old.migrate()
    assert foreseen.pop("stops") == []
    assert foreseen.pop("clocked")["merged"] == 0
    assert done == foreseen
    assert old.call(CHECK) == ["nothing to merge\n"]


def test_before_a_migrate_begins_nothing_at_all_is_changed(old: Old) -> None:
    if old.link.vendor == "sqlite":
        pytest.skip("the same code")
    old.run(f"ALTER TABLE {PREFIX}periodictask ADD COLUMN tenant INTEGER NOT NULL")
    assert "periodictask.tenant is NOT NULL" in run_python(old.scratch.env, migrate_with_the_receiver)
    tables = {table.name for table in old.link.introspection.get_table_list(old.link.cursor())}
    assert not [name for name in tables if name.startswith("onebeat_")]


def migrate_with_the_receiver() -> str:
    from django.apps import apps
    from django.core.management import CommandError, call_command
    from django.db.models.signals import pre_migrate

    from onebeat.takeover.arrive.adopt import before_migrate

    pre_migrate.connect(before_migrate, sender=apps.get_app_config("django_celery_beat"))
    try:
        call_command(*MIGRATE)
    except CommandError as error:
        return str(error)
    return ""
