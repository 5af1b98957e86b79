"""Taking over a database: duplicates become one row, everything that refers to them follows, nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.processes import run_python
from tests.takeover.old import BACK, CHECK, MIGRATE, PREFIX, Old, old, old_templates

__all__ = ["old", "old_templates"]

VALUES = {
    "intervalschedule": "every, period",
    "crontabschedule": "minute, hour, day_of_month, month_of_year, day_of_week, timezone",
    "clockedschedule": "clocked_time",
}


def test_each_value_becomes_its_oldest_row_and_the_tasks_follow(old: Old) -> None:
    old.intervals((2, 5, "minutes"), (3, 5, "minutes"), (5, 7, "minutes"), (7, 5, "minutes"))
    old.crontabs(
        (1, "*/5", "*", "*", "*", "*"), (2, "*/5", "*", "*", "*", "*"), (3, "*/5", "*", "*", "*", "*", "Europe/Paris")
    )
    old.clocks((4, "2030-01-01 10:00:00"), (6, "2030-01-01 10:00:00"), (8, "2030-01-01 10:00:01"))
    for key in (2, 3, 5, 7):
        old.task(f"interval {key}", interval_id=key)
    for key in (1, 2, 3):
        old.task(f"crontab {key}", crontab_id=key)
    for key in (4, 6, 8):
        old.task(f"clocked {key}", clocked_id=key, one_off=True)
    told = old.migrate()
    assert old.keys("intervalschedule") == [2, 5]
    assert old.keys("crontabschedule") == [1, 3]
    assert old.keys("clockedschedule") == [4, 8]
    uses = {kind: old.uses(f"{kind}_id") for kind in ("interval", "crontab", "clocked")}
    assert {name: key for name, key in uses["interval"].items() if key} == {
        "interval 2": 2, "interval 3": 2, "interval 5": 5, "interval 7": 2,
    }  # fmt: skip
    assert {name: key for name, key in uses["crontab"].items() if key} == {
        "crontab 1": 1, "crontab 2": 1, "crontab 3": 3,
    }  # fmt: skip
    assert {name: key for name, key in uses["clocked"].items() if key} == {
        "clocked 4": 4, "clocked 6": 4, "clocked 8": 8,
    }  # fmt: skip
    for table, columns in VALUES.items():
        with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
            old.run(f"INSERT INTO {PREFIX}{table} ({columns}) SELECT {columns} FROM {PREFIX}{table}")
    assert told["interval"]["merged"] == 2
    assert told["interval"]["repointed"] == {f"{PREFIX}periodictask.interval_id": 2}
    assert told["interval"]["kept"] == [{"id": 2, "value": "5 minutes", "merged": 2, "tasks": 3}]


def test_columns_of_tables_that_django_does_not_know_follow(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"), (3, 6, "minutes"))
    old.run(
        "CREATE TABLE strange (id INTEGER PRIMARY KEY, plan INTEGER NULL, note VARCHAR(9), "
        f"FOREIGN KEY (plan) REFERENCES {PREFIX}intervalschedule (id) ON DELETE CASCADE)"
    )
    old.run("INSERT INTO strange VALUES (1, 2, 'a'), (2, 1, 'b'), (3, 3, 'c'), (4, NULL, 'd'), (5, 2, 'e')")
    told = old.migrate()
    assert dict(old.run("SELECT note, plan FROM strange")) == {"a": 1, "b": 1, "c": 3, "d": None, "e": 1}
    assert told["interval"]["repointed"] == {"strange.plan": 2}


#: Field types that a generic key may have, and what they are made with.
GENERIC: dict[str, dict[str, Any]] = {
    "UUIDField": {}, "CharField": {"max_length": 64}, "SlugField": {}, "TextField": {}, "SmallIntegerField": {},
    "PositiveSmallIntegerField": {}, "IntegerField": {}, "PositiveIntegerField": {}, "BigIntegerField": {},
    "PositiveBigIntegerField": {}, "DecimalField": {"max_digits": 20, "decimal_places": 0}, "FloatField": {},
}  # fmt: skip


def test_generic_keys_of_each_of_django_s_field_types_follow(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"), (3, 7, "minutes"))
    old.clocks((1, "2030-01-01 10:00:00"), (2, "2030-01-02 10:00:00"))
    stops, foreseen, rows = run_python(old.scratch.env, labels)
    # A text may be in no unique key on MySQL.
    unique = GENERIC.keys() - ({"TextField"} if old.scratch.vendor == "mysql" else set())
    assert {field for field in GENERIC if f"shop_once.{field.lower()} may hold each of them once" in stops} == unique
    assert stops.count("may hold each of them once") == len(unique)
    assert old.keys("intervalschedule") == [1, 3]
    assert len(rows) == 2 * len(GENERIC)
    for name, keys in rows.items():
        ones = 2 if name.startswith("shop_often.") else 1
        assert keys == [["clocked", 2], *[["interval", 1]] * ones, ["interval", 9]], name
        assert foreseen[name] == 1, name


def labels() -> list[Any]:
    """Two models with generic keys of each type, in unique keys and in none, with rows that refer to the duplicate: why
    the migration stops, what `adopt --check` foresees without what stops it, the keys after migrating.
    """
    import io
    import json
    import uuid

    from django.contrib.contenttypes.fields import GenericForeignKey
    from django.contrib.contenttypes.models import ContentType
    from django.core.management import CommandError, call_command
    from django.db import connection, models

    kinds = {name: ContentType.objects.get_or_create(app_label="django_celery_beat", model=f"{name}schedule")[0].pk
             for name in ("interval", "clocked")}  # fmt: skip

    def made(name: str, unique: set[str]) -> Any:
        columns = {field.lower(): getattr(models, field)(**options) for field, options in GENERIC.items()}
        targets = {f"by_{column}": GenericForeignKey("kind", column) for column in columns}
        rules = [models.UniqueConstraint(fields=["kind", one.lower()], name=f"shop_{one.lower()}") for one in unique]
        meta = type("Meta", (), {"app_label": "shop", "db_table": f"shop_{name}", "constraints": rules})
        kind = models.ForeignKey(ContentType, models.CASCADE, related_name="+")
        model: Any = type(name, (models.Model,), {
            "__module__": __name__, "Meta": meta, "kind": kind, **columns, **targets
        })  # fmt: skip
        with connection.schema_editor() as editor:
            editor.create_model(model)
        for what, key in (("interval", 1), ("interval", 2), ("interval", 9), ("clocked", 2)):
            model.objects.create(kind_id=kinds[what], **dict.fromkeys(columns, key))
        return model

    both = (
        made("often", set()),
        made("once", GENERIC.keys() - ({"TextField"} if connection.vendor == "mysql" else set())),
    )
    try:
        call_command(*MIGRATE)
    except CommandError as error:
        stops = str(error)
    else:
        raise AssertionError("two rows of a unique key became one")
    both[1].objects.filter(kind=kinds["interval"], integerfield=1).delete()
    told = io.StringIO()
    call_command(*CHECK, "--json", stdout=told)
    call_command(*MIGRATE)
    words = {key: word for word, key in kinds.items()}
    rows = {
        f"shop_{model.__name__}.{field.lower()}": sorted(
            (words[kind], key.int if isinstance(key, uuid.UUID) else int(key))
            for kind, key in model.objects.values_list("kind", field.lower())
        )
        for model in both
        for field in GENERIC
    }
    return [stops, json.loads(told.getvalue())["interval"]["repointed"], rows]


def test_a_caller_s_transaction_may_hold_the_whole_take_over(old: Old) -> None:
    if old.scratch.vendor != "postgresql":
        pytest.skip("DDL in a transaction is PostgreSQL's")
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"))
    old.run(f"CREATE UNIQUE INDEX onebeat_clocked_value ON {PREFIX}clockedschedule (clocked_time)")
    old.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'onebeat_clocked_value'::regclass")
    assert run_python(old.scratch.env, within_a_transaction) == [[["made before", 1]], True]
    assert old.keys("intervalschedule") == [1]


def within_a_transaction() -> list[Any]:
    """Migrate in a transaction that has written already: undone, then kept. Tables count as large."""
    from django.core.management import call_command
    from django.db import connection, transaction

    from onebeat.models import IntervalSchedule, PeriodicTask
    from onebeat.takeover.arrive import constrain

    constrain.LARGE = 1
    for undo in (True, False):
        with transaction.atomic():
            PeriodicTask.objects.create(name="made before", task="shop.remind", interval_id=2)
            call_command(*MIGRATE)
            adopted = IntervalSchedule.objects.create(every=5, period="minutes").pk == 1
            transaction.set_rollback(undo)
        tables = connection.introspection.table_names()
        assert ("onebeat_occurrence" in tables) != undo
        assert PeriodicTask.objects.filter(name="made before").exists() != undo
    return [list(PeriodicTask.objects.values_list("name", "interval_id")), adopted]


def test_rows_are_spelled_as_the_models_would_spell_them_and_then_compared(old: Old) -> None:
    old.intervals((1, 5, "Minutes"), (2, 5, " minutes"), (3, 5, "minutes"))
    old.crontabs(
        (1, "0, 30", "*", "*", "*", "MON-fri", "europe/paris"),
        (2, "0,30", "*", "*", "*", "1-5", "Europe/Paris"),
        (3, "00,30", "*", "*", "jan-dec", "monday-friday", "Europe/Paris"),
        # What Celery read otherwise, or not at all, stays as it is.
        (4, "*/5-20", "*", "*", "*", "*"),
        (5, "*/5", "*", "*", "*", "*"),
        (6, "0", "0", "31", "2", "*"),
        (7, "0", "0", "*", "*", "fri#L"),
        (8, "0", "0", "*", "*", "*", "Mars/Olympus"),
    )
    for key in range(1, 9):
        old.task(f"task {key}", crontab_id=key)
    told = old.migrate()
    assert old.run(f"SELECT id, every, period FROM {PREFIX}intervalschedule") == [(1, 5, "minutes")]
    rows = old.run(f"SELECT id, {VALUES['crontabschedule']} FROM {PREFIX}crontabschedule ORDER BY id")
    assert [tuple(row) for row in rows] == [
        (1, "0,30", "*", "*", "*", "1-5", "Europe/Paris"),
        (4, "*/5-20", "*", "*", "*", "*", "UTC"),
        (5, "*/5", "*", "*", "*", "*", "UTC"),
        (6, "0", "0", "31", "2", "*", "UTC"),
        (7, "0", "0", "*", "*", "fri#L", "UTC"),
        (8, "0", "0", "*", "*", "*", "Mars/Olympus"),
    ]
    assert old.uses("crontab_id") == {f"task {key}": 1 if key < 4 else key for key in range(1, 9)}
    assert (told["interval"]["respelled"], told["crontab"]["respelled"]) == (2, 2)
    assert {row["id"]: row["verdict"] for row in told["readings"]["rows"]} == {
        4: "expanded", 6: "disabled", 7: "expanded", 8: "zone",
    }  # fmt: skip


def test_a_migration_that_was_stopped_goes_on_where_it_was(old: Old) -> None:
    old.intervals(*((key, key // 3, "minutes") for key in range(3, 303)))
    for key in range(3, 303):
        old.task(f"task {key}", interval_id=key)
    done = run_python(old.scratch.env, stop_in_the_middle)
    assert 0 < done < 200
    assert len(old.keys("intervalschedule")) == 300 - done
    told = old.migrate()
    assert old.keys("intervalschedule") == list(range(3, 303, 3))
    assert old.uses("interval_id") == {f"task {key}": key - key % 3 for key in range(3, 303)}
    assert (told["interval"]["merged"], told["interval"]["groups"]) == (200, 100)


def stop_in_the_middle() -> int:
    from django.core.management import call_command

    from onebeat.takeover.arrive import merge

    merge.BATCH = 40
    before = merge.merge
    calls = []

    def failing(table, keys=None):
        calls.append(keys)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return before(table, keys)

    merge.merge = failing
    try:
        call_command(*MIGRATE)
    except KeyboardInterrupt:
        from onebeat.takeover.arrive.record import recorded

        return recorded("default")["interval"]["merged"]
    raise AssertionError("nothing stopped it")


def test_the_way_back_drops_the_constraints_and_forward_is_free_again(old: Old) -> None:
    old.intervals((1, 5, "minutes"), (2, 5, "minutes"))
    old.call(MIGRATE, BACK)
    # A later django-celery-beat has been here, whose migration we do not know.
    old.run(
        "INSERT INTO django_migrations (app, name, applied) "
        "VALUES ('django_celery_beat', '0020_unknown', '2030-01-01 00:00:00')"
    )
    old.run(f"ALTER TABLE {PREFIX}periodictask ADD COLUMN color VARCHAR(9) NULL")
    old.run(f"ALTER TABLE {PREFIX}periodictask ADD COLUMN weight INTEGER NOT NULL DEFAULT 1")
    old.intervals((3, 5, "minutes"))
    old.task("one", interval_id=3)
    old.migrate()
    assert old.keys("intervalschedule") == [1]
    assert old.uses("interval_id") == {"one": 1}


def test_the_constraint_of_many_rows_is_made_beside_the_writers(old: Old) -> None:
    old.insert("clockedschedule", [{"id": 1, "clocked_time": "2031-01-01 00:00:00"}])
    moved = {
        "sqlite": "datetime(clocked_time, '+' || %s || ' seconds')",
        "mysql": "clocked_time + INTERVAL %s SECOND",
        "postgresql": "clocked_time + %s * INTERVAL '1 second'",
    }[old.link.vendor]
    for power in range(15):
        old.run(
            f"INSERT INTO {PREFIX}clockedschedule (id, clocked_time) "
            f"SELECT id + %s, {moved} FROM {PREFIX}clockedschedule", 2**power, 2**power,
        )  # fmt: skip
    old.run(f"UPDATE {PREFIX}clockedschedule SET clocked_time = '2031-01-01 00:00:00' WHERE id <= 2500")
    old.task("last", clocked_id=2500, one_off=True)
    old.migrate()
    assert old.keys("clockedschedule") == [1, *range(2501, 2**15 + 1)]
    assert old.uses("clocked_id") == {"last": 1}
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        old.clocks((1_000_000, "2031-01-01 00:00:00"))


def test_rows_that_come_in_before_the_lock_are_merged_under_it(old: Old) -> None:
    old.crontabs((1, "0", "*", "*", "*", "1"), (2, "0", "*", "*", "*", "Mon"), (3, "1", "*", "*", "*", "1"))
    old.run(
        "CREATE TABLE strange (id INTEGER PRIMARY KEY, plan INTEGER NULL, "
        f"FOREIGN KEY (plan) REFERENCES {PREFIX}crontabschedule (id) ON DELETE CASCADE)"
    )
    old.run(
        "CREATE TABLE stranger (id INTEGER PRIMARY KEY, friend INTEGER NULL, "
        "FOREIGN KEY (friend) REFERENCES strange (id) ON DELETE CASCADE)"
    )
    old.task("a", crontab_id=2)
    run_python(old.scratch.env, come_in_before_the_lock)
    assert old.keys("crontabschedule") == [1, 3]
    assert old.uses("crontab_id") == {"a": 1, "b": 1, "c": 3}
    assert dict(old.run("SELECT id, plan FROM strange")) == {1: 1, 2: 3}
    assert len(old.run("SELECT id FROM stranger")) == 2
    (told,) = old.call(("onebeat", "adopt"))
    assert "crontab: 3 duplicates of 2 rows merged, 3 rows respelled" in told


def come_in_before_the_lock() -> None:
    from django.core.management import call_command
    from django.db import connection

    from onebeat.takeover.arrive import merge

    before = merge.merge_most

    def and_more(table, report, tell):
        before(table, report, tell)
        if table.kind == "crontab":
            new = Old.__new__(Old)
            new.__dict__["link"] = connection
            new.crontabs((11, "0", "*", "*", "*", "MON"), (12, "1", "*", "*", "*", "mon"))
            new.task("b", crontab_id=11)
            new.task("c", crontab_id=12)
            new.run("INSERT INTO strange VALUES (1, 11), (2, 12)")
            new.run("INSERT INTO stranger VALUES (1, 1), (2, 2)")

    merge.merge_most = and_more
    call_command(*MIGRATE)
