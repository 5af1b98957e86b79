"""Taking the schedules of a django-celery-beat database over: what stands in the way, what would be merged, the
migration's operation that merges and adds the constraint, and the record of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from django.apps import apps as installed
from django.apps.registry import Apps
from django.core.management.base import CommandError
from django.db import connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddConstraint

from onebeat.core import clock
from onebeat.db import catalog, expressions, transactions
from onebeat.takeover.arrive import celery_readings, constrain, merge, unschedulable
from onebeat.takeover.arrive.merge import Report, Table

LABEL = "django_celery_beat"
TABLES = (*("intervalschedule", "crontabschedule", "solarschedule", "clockedschedule"), "periodictask", "periodictasks")
#: The columns that are a schedule's value, and the constraint's name.
VALUES: dict[str, tuple[str, ...]] = {
    "interval": ("every", "period"),
    "crontab": ("minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"),
    "clocked": ("clocked_time",),
}
#: The engine's copies of definitions follow a merge, so that it does not look like somebody's edit.
_COPIES = "onebeat_taskstate"
_FACTS = "onebeat_fact"
_TASKS = f"{LABEL}_periodictask"
_READINGS = "readings"
_UNPLANNABLE = "unplannable"
#: The fact that the crontab rows of this database have not been read as Celery read them yet.
_TO_READ = "crontabs_to_read"
_SECONDS_BETWEEN_LINES = 5.0
#: How often the constraint is tried beside writers who insert duplicates meanwhile.
_TRIES = 3


class CannotAdopt(CommandError):
    """Something in the database stands in the way; nothing of it was changed. The message has a line for each."""

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__("\n  ".join(["This database cannot be taken over as it is. Nothing was changed.", *lines]))


def constraint(kind: str) -> str:
    """The name of a kind's unique constraint."""
    return f"onebeat_{kind}_value"


def table(using: str, kind: str, registry: Apps) -> Table:
    """A schedule table with everything in the database that refers to it. Raises LookupError before its migration."""
    meta = registry.get_model(LABEL, f"{kind}schedule")._meta
    pk: Any = meta.pk
    found = catalog.references(using, meta.db_table, pk.column, {installed, registry})
    found += catalog.generic_references(using, meta.db_table, installed)
    if catalog.exists(using, _COPIES, kind):
        found.append(catalog.Reference(expressions.quoted(using, _COPIES), kind))
    return Table(using, kind, meta.db_table, pk.column, VALUES[kind], tuple(found))


def waiting(using: str, registry: Apps) -> list[Table]:
    """The tables that are there and have no constraint yet."""
    found = []
    for kind in VALUES:
        try:
            meta = registry.get_model(LABEL, f"{kind}schedule")._meta
        except LookupError:
            continue
        if catalog.exists(using, meta.db_table):
            one = table(using, kind, registry)
            if not constrain.present(one, constraint(kind)):
                found.append(one)
    return found


def obstacles(using: str, registry: Apps) -> list[str]:
    """What stands in the way, one line each: columns that nobody here would fill, and groups that cannot be merged.

    Looks at the database as it is and changes nothing. `registry` has the models as its tables are.
    """
    lines = []
    for name in TABLES:
        try:
            model = registry.get_model(LABEL, name)
        except LookupError:
            continue
        if catalog.exists(using, model._meta.db_table):
            lines += catalog.misfits(using, model)
    if lines:
        return lines
    for one in waiting(using, registry):
        if one.kind == "crontab" or any(each.keys or each.identity for each in one.references):
            lines += _tried(one, lambda one=one: [*merge.collisions(one), *_torn(one)])[1]  # type: ignore[misc]
    return lines


def _torn(one: Table) -> Iterable[str]:
    return celery_readings.torn(one) if one.kind == "crontab" else ()


def stop_if_impossible(using: str, registry: Apps) -> None:
    """Raises `CannotAdopt` naming all `obstacles`."""
    if lines := obstacles(using, registry):
        raise CannotAdopt(lines)


def before_migrate(using: str, apps: Apps, plan: Iterable[tuple[Any, bool]], **kwargs: Any) -> None:
    """Receiver of `pre_migrate`: raises `CannotAdopt` before any migration of the run, if ours are among them."""
    ours = f"{LABEL}.100"
    if any(f"{one.app_label}.{one.name}".startswith(ours) and not backwards for one, backwards in plan):
        stop_if_impossible(using, apps)


def _tried(one: Table, look: Callable[[], Any]) -> tuple[Report, Any]:
    """What `look` sees when every value has its one spelling; nothing of it stays."""
    report = Report()
    with transactions.short_transaction(one.using):
        merge.respell(one, report, 0, _silent)
        found = look()
        transaction.set_rollback(True, using=one.using)
    return report, found


def _silent(line: str) -> None:
    pass


def check(using: str) -> dict[str, Any]:
    """What `migrate` would do to this database, as the report that it would leave; nothing is changed."""
    loader = MigrationLoader(connections[using])
    # The models as the tables are now, and not as they will be.
    registry = loader.project_state([key for key in loader.applied_migrations if key in loader.graph.nodes]).apps
    found: dict[str, Any] = {"stops": obstacles(using, registry)}
    for one in waiting(using, registry) if not found["stops"] else ():
        report, (foreseen, shown, read) = _tried(one, lambda one=one: _foreseen(one))  # type: ignore[misc]
        report.add(foreseen)
        found[one.kind] = _as_json(report, shown)
        if read.get("rows"):
            found[_READINGS] = read
    if not found["stops"] and (wrong := unschedulable.values(using, registry)):
        found[_UNPLANNABLE] = wrong
    return found


def _foreseen(one: Table) -> tuple[Report, list[dict[str, Any]], dict[str, Any]]:
    report = merge.foreseen(one)
    return report, _shown(one, report), celery_readings.foreseen(one, _TASKS) if one.kind == "crontab" else {}


def _shown(one: Table, report: Report) -> list[dict[str, Any]]:
    """The rows that stand for others, those with the most first, and how many tasks share each."""
    keys = [key for key, _ in report.kept.most_common(merge.NAMED)]
    texts, tasks = merge.values(one, keys), merge.sharing(one, keys, _TASKS)
    return [
        {"id": key, "value": texts[key], "merged": report.kept[key], "tasks": tasks[key]}
        for key in keys if key in texts
    ]  # fmt: skip


def _as_json(report: Report, shown: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "respelled": report.respelled,
        "merged": report.merged,
        "groups": len(report.kept),
        "kept": shown,
        "repointed": dict(report.repointed),
    }


# -- the migration -------------------------------------------------------------------------------------------------


class MergeAndConstrain(AddConstraint):
    """AddConstraint for a schedule table, which first merges its duplicates. For a migration that is not atomic.

    May be stopped at any point and run again. Raises `CannotAdopt` before anything is changed.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        using = schema_editor.connection.alias
        model = to_state.apps.get_model(app_label, self.model_name)

        def plain() -> None:
            AddConstraint.database_forwards(self, app_label, schema_editor, from_state, to_state)

        if schema_editor.collect_sql or not self.allow_migrate_model(using, model):
            return plain()
        stop_if_impossible(using, to_state.apps)
        kind = self.model_name_lower.removesuffix("schedule")
        one = table(using, kind, to_state.apps)
        if not constrain.present(one, self.constraint.name):
            _unify(one, self.constraint.name, plain)
        return None

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        link = schema_editor.connection
        with transactions.writing(link.alias) if link.features.can_rollback_ddl else nullcontext():
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def _unify(one: Table, name: str, plain: Callable[[], None]) -> None:
    report, tell = Report(), _teller()
    try:
        seen = merge.respell(one, report, 0, tell)
        merge.merge_most(one, report, tell)
        done = constrain.from_index(one, name)
        for _ in range(_TRIES if constrain.large(one) else 0):
            tell(f"{one.kind}: building the index")
            done = done or constrain.beside_writers(one, name)
            if done:
                break
            merge.merge_most(one, report, tell)
        if not done:
            _finish(one, name, report, seen, plain)
    finally:
        _record(one, report)


def _finish(one: Table, name: str, report: Report, seen: int, plain: Callable[[], None]) -> None:
    latest = Report()

    def last() -> None:
        nonlocal latest
        latest = Report()  # what an attempt did that was given up is undone
        merge.respell(one, latest, seen, _silent)
        latest.add(merge.merge(one))

    constrain.under_lock(one, name, last, plain)
    report.add(latest)


def _teller() -> Callable[[str], None]:
    """Says on the standard error stream how far it is, now and then, when it takes long."""
    last = clock.monotonic()

    def tell(line: str) -> None:
        nonlocal last
        if clock.monotonic() - last > _SECONDS_BETWEEN_LINES:
            last = clock.monotonic()
            sys.stderr.write(f"\n  onebeat: {line}")
            sys.stderr.flush()

    return tell


def _record(one: Table, report: Report) -> None:
    """Keep the report in the database, joined with that of an earlier run that was stopped."""
    if one.kind == "crontab":
        _remember(one.using, _TO_READ, "every row that is there was made before the take-over")
    if not (report.respelled or report.merged):
        return
    name = f"adopted_{one.kind}"
    for (text,) in one.rows(f"SELECT value FROM {one.quoted(_FACTS)} WHERE name = %s", [name]):
        old = json.loads(text)
        kept = Counter({row["id"]: row["merged"] for row in old["kept"]})
        report.add(Report(old["respelled"], old["merged"], kept, Counter(old["repointed"])))
    _remember(one.using, name, json.dumps(_as_json(report, _shown(one, report))))


def _remember(using: str, name: str, value: str) -> None:
    """Write a fact; an empty one is dropped."""
    facts = expressions.quoted(using, _FACTS)
    with transactions.short_transaction(using), connections[using].cursor() as cursor:
        cursor.execute(f"DELETE FROM {facts} WHERE name = %s", [name])
        if value:
            cursor.execute(f"INSERT INTO {facts} (name, value) VALUES (%s, %s)", [name, value])


def keep_readings(registry: Apps, schema_editor: Any) -> None:
    """The migration's step after the tables are taken over: crontab rows keep the meaning that Celery gave them.

    Rows that were made under an onebeat which did not do this yet keep the meaning that it gave them.
    """
    using = schema_editor.connection.alias
    one = table(using, "crontab", registry)
    if not one.rows(f"SELECT 1 FROM {one.quoted(_FACTS)} WHERE name = %s", [_TO_READ]):
        return
    kept, rows = celery_readings.odd(one)
    if rows:
        _remember(using, f"adopted_{_READINGS}", json.dumps(celery_readings.as_json(one, _TASKS, kept, rows)))
        celery_readings.keep(one, rows)
        celery_readings.disable(one, _TASKS, rows)
    _remember(using, _TO_READ, "")


def recorded(using: str) -> dict[str, Any]:
    """What was merged when this database was taken over, by kind; {} if nothing was, or it is not migrated yet."""
    if not catalog.exists(using, _FACTS):
        return {}
    found = {}
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT name, value FROM {expressions.quoted(using, _FACTS)} WHERE name LIKE 'adopted%%'", [])
        for name, text in cursor.fetchall():
            found[name.removeprefix("adopted_")] = json.loads(text)
    return found


def lines(found: dict[str, Any], *, done: bool) -> list[str]:
    """A report for people."""
    would = "" if done else "would be "
    told = [f"STOPS: {line}" for line in found.get("stops", ())]
    for kind, one in found.items():
        if kind in ("stops", _READINGS, _UNPLANNABLE):
            continue
        told.append(
            f"{kind}: {one['merged']} duplicates of {one['groups']} rows {would}merged, {one['respelled']} rows "
            f"{would}respelled"
        )
        told += [f"  {name}: {count} rows {would}pointed at the kept row" for name, count in one["repointed"].items()]
        told += [
            f"  {kind} {row['id']} ({row['value']}) stands for {row['merged']} more, used by {row['tasks']} tasks"
            for row in one["kept"]
        ]
    told += celery_readings.lines(found.get(_READINGS, {}), done=done)
    told += unschedulable.lines(found.get(_UNPLANNABLE, []))
    return told or ["nothing to merge"]
