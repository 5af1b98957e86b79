"""What the migrations of a take-over do: merge duplicate schedules and forbid new ones, keep Celery's readings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext

from django.apps.registry import Apps
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddConstraint
from django.db.migrations.state import ProjectState

from onebeat.core import clock
from onebeat.db import transactions
from onebeat.takeover.arrive import adopt, celery_readings, constrain, merge, record
from onebeat.takeover.arrive.merge import MergeReport, Progress
from onebeat.takeover.arrive.tables import ScheduleTable, schedule_table

_SECONDS_BETWEEN_LINES = 5.0
#: How often the constraint is tried beside writers who insert duplicates meanwhile.
_TRIES = 3


class MergeAndConstrain(AddConstraint):
    """AddConstraint for a schedule table, which first merges its duplicates. For a migration that is not atomic.

    May be stopped at any point and run again. Raises `CannotAdopt` before anything is changed.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        using = schema_editor.connection.alias
        model = to_state.apps.get_model(app_label, self.model_name)

        def add_constraint() -> None:
            AddConstraint.database_forwards(self, app_label, schema_editor, from_state, to_state)

        if schema_editor.collect_sql or not self.allow_migrate_model(using, model):
            return add_constraint()
        adopt.stop_if_impossible(using, to_state.apps)
        table = schedule_table(using, self.model_name_lower.removesuffix("schedule"), to_state.apps)
        if not constrain.present(table, self.constraint.name):
            _unify(table, self.constraint.name, to_state.apps, add_constraint)
        return None

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        link = schema_editor.connection
        with transactions.writing(link.alias) if link.features.can_rollback_ddl else nullcontext():
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def _unify(table: ScheduleTable, name: str, registry: Apps, add_constraint: Callable[[], None]) -> None:
    report, progress = MergeReport(), _progress()
    try:
        seen = merge.respell(table, report, 0, progress)
        merge.merge_most(table, report, progress)
        done = constrain.from_index(table, name)
        for _ in range(_TRIES if constrain.large(table) else 0):
            progress(f"{table.kind}: building the index")
            done = done or constrain.beside_writers(table, name)
            if done:
                break
            merge.merge_most(table, report, progress)
        if not done:
            _finish(table, name, report, seen, add_constraint)
    finally:
        record.keep_merge(table, registry, report)


def _finish(
    table: ScheduleTable, name: str, report: MergeReport, seen: int, add_constraint: Callable[[], None]
) -> None:
    latest = MergeReport()

    def merge_the_rest() -> None:
        nonlocal latest
        latest = MergeReport()  # what an attempt did that was given up is undone
        merge.respell(table, latest, seen, lambda line: None)
        latest.add(merge.merge(table))

    constrain.under_lock(table, name, merge_the_rest, add_constraint)
    report.add(latest)


def _progress() -> Progress:
    """Writes to the standard error stream how far the work is, every few seconds."""
    last = clock.monotonic()

    def progress(line: str) -> None:
        nonlocal last
        if clock.monotonic() - last > _SECONDS_BETWEEN_LINES:
            last = clock.monotonic()
            sys.stderr.write(f"\n  onebeat: {line}")
            sys.stderr.flush()

    return progress


def keep_readings(registry: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The migration's step after the tables are taken over: crontab rows keep the meaning that Celery gave them.

    Rows that were made under an onebeat which did not do this yet keep the meaning that it gave them.
    """
    using = schema_editor.connection.alias
    if not record.crontabs_to_read(using, registry):
        return
    table = schedule_table(using, "crontab", registry)
    readings = celery_readings.read_all(table)
    if readings.odd:
        record.put(using, registry, "adopted_readings", celery_readings.as_json(table, readings))
        celery_readings.keep(table, readings.odd)
        celery_readings.disable(table, readings.odd)
    record.crontabs_are_read(using, registry)
