"""A look at a django-celery-beat database before it is taken over: what stands in the way, what would be merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from django.apps.registry import Apps
from django.db import connections, transaction
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model

from onebeat.db import catalog, transactions
from onebeat.db.schema import LABEL
from onebeat.models.task_rules import SCHEDULES
from onebeat.takeover.arrive import celery_readings, constrain, foresee, merge, unschedulable
from onebeat.takeover.arrive.merge import MergeReport
from onebeat.takeover.arrive.obstacles import CannotAdopt, MissingColumn, Obstacle, UnfilledColumn
from onebeat.takeover.arrive.tables import VALUES, ScheduleTable, constraint_name, schedule_table

T = TypeVar("T")

_MODELS = (*(f"{kind}schedule" for kind in SCHEDULES), "periodictask", "periodictasks")


def check(using: str) -> dict[str, object]:
    """What `migrate` would do to this database, as the report that it would leave; nothing is changed.

    "stops" has the obstacles as text, and each kind of schedule what would be merged of it; "readings" what Celery made
    of crontab rows that mean something else here, "unplannable" the values that no rule can be made of.
    """
    registry = models_as_they_are(MigrationLoader(connections[using]))
    stops = obstacles(using, registry)
    found: dict[str, object] = {"stops": [str(obstacle) for obstacle in stops]}
    if stops:
        return found
    for table in _unconstrained(using, registry):
        report = MergeReport()
        found[table.kind], readings = _tried(table, report, partial(_foreseen, table, report))
        if readings.get("rows"):
            found["readings"] = readings
    if wrong := unschedulable.values(using, registry):
        found["unplannable"] = wrong
    return found


def models_as_they_are(loader: MigrationLoader) -> Apps:
    """The models as the tables are now, and not as they will be."""
    known = [key for key in loader.applied_migrations if key in loader.graph.nodes]
    registry: Apps = loader.project_state(known).apps
    return registry


def _foreseen(table: ScheduleTable, report: MergeReport) -> tuple[dict[str, object], dict[str, object]]:
    report.add(foresee.foreseen(table))
    crontabs = table.kind == "crontab"
    readings = celery_readings.as_json(table, celery_readings.read_all(table)) if crontabs else {}
    return foresee.as_json(table, report), readings


def _tried(table: ScheduleTable, report: MergeReport, look: Callable[[], T]) -> T:
    """What `look` sees when every value has its canonical form; nothing of it stays."""
    with transactions.short_transaction(table.using):
        merge.respell(table, report, 0, lambda line: None)
        found = look()
        transaction.set_rollback(True, using=table.using)
    return found


def _unconstrained(using: str, registry: Apps) -> Iterator[ScheduleTable]:
    """The schedule tables that are there and have no constraint yet."""
    there = {model._meta.db_table for model in _present(using, registry)}
    for kind in VALUES:
        if f"{LABEL}_{kind}schedule" not in there:
            continue
        if not constrain.present(schedule_table(using, kind, registry, alone=True), constraint_name(kind)):
            yield schedule_table(using, kind, registry)


def obstacles(using: str, registry: Apps) -> list[Obstacle]:
    """What stands in the way: columns that nobody here would fill, else groups that cannot be merged.

    Looks at the database as it is and changes nothing. `registry` has the models as its tables are.
    """
    found = _misfits(using, registry)
    if found:
        return found
    for table in _unconstrained(using, registry):
        if table.kind == "crontab" or any(each.keys or each.identity for each in table.references):
            found += _tried(table, MergeReport(), partial(_impossible, table))
    return found


def _impossible(table: ScheduleTable) -> list[Obstacle]:
    found: list[Obstacle] = [*foresee.collisions(table)]
    return [*found, *celery_readings.read_differently(table)] if table.kind == "crontab" else found


def _misfits(using: str, registry: Apps) -> list[Obstacle]:
    found: list[Obstacle] = []
    for model in _present(using, registry):
        table, misfits = model._meta.db_table, catalog.misfits(using, model)
        found += [UnfilledColumn(table, column) for column in misfits.unfilled]
        found += [MissingColumn(table, column) for column in misfits.missing]
    return found


def _present(using: str, registry: Apps) -> Iterator[type[Model]]:
    """The models of the old tables that are there."""
    known = registry.all_models[LABEL]
    yield from (known[name] for name in _MODELS if name in known and catalog.exists(using, known[name]._meta.db_table))


def stop_if_impossible(using: str, registry: Apps) -> None:
    """Raises `CannotAdopt` naming all `obstacles`."""
    if found := obstacles(using, registry):
        raise CannotAdopt(found)


def before_migrate(using: str, apps: Apps, plan: Iterable[tuple[Migration, bool]], **kwargs: object) -> None:
    """Receiver of `pre_migrate`: raises `CannotAdopt` before any migration of the run.

    Where ours are not among them, the tables may have changed all the same: a later django-celery-beat has been at
    work with them since they were given back, and added a column that nobody here would fill.
    """
    ours = [(migration, backwards) for migration, backwards in plan if migration.app_label == LABEL]
    if any(backwards for _, backwards in ours):
        return
    if any(migration.name.startswith("100") for migration, _ in ours):
        stop_if_impossible(using, apps)
    elif unfilled := [each for each in _misfits(using, apps) if isinstance(each, UnfilledColumn)]:
        raise CannotAdopt(unfilled)
