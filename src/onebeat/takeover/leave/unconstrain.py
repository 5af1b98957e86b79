"""The unique constraints of the schedules, taken away for django-celery-beat and made again by the next `migrate`.

The migrations that made them stay recorded: others of ours come after them. `manage.py migrate django_celery_beat 0019`
takes away the engine's tables as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from django.apps import apps
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RemoveConstraint

from onebeat.db import catalog
from onebeat.db.schema import LABEL
from onebeat.takeover.arrive import adopt, constrain
from onebeat.takeover.arrive.operations import MergeAndConstrain
from onebeat.takeover.arrive.tables import VALUES, constraint_name, schedule_table


def present(using: str) -> list[str]:
    """The kinds of schedules whose constraint is there."""
    found = []
    for kind in VALUES:
        if catalog.exists(using, apps.get_model(LABEL, f"{kind}schedule")._meta.db_table):
            table = schedule_table(using, kind, apps, alone=True)
            found += [kind] if constrain.present(table, constraint_name(kind)) else []
    return found


def drop(using: str) -> list[str]:
    """Take the constraints away. Returns the kinds that had one."""
    kinds = present(using)
    if not kinds:
        return []
    link = connections[using]
    loader = MigrationLoader(link)
    state = loader.project_state([key for key in loader.applied_migrations if key in loader.graph.nodes])
    for kind in kinds:
        before, state = state, state.clone()
        operation = RemoveConstraint(f"{kind}schedule", constraint_name(kind))
        operation.state_forwards(LABEL, state)
        with link.schema_editor() as editor:
            operation.database_forwards(LABEL, editor, before, state)
    return kinds


def restore(using: str, plan: object = None, **kwargs: object) -> None:
    """Receiver of `post_migrate`: merge and constrain again where a recorded migration's constraint is gone."""
    if plan is None:  # `flush` sends this signal too
        return
    there = present(using)
    if len(there) == len(VALUES):
        return
    link = connections[using]
    loader = MigrationLoader(link)
    for operation in _recorded(loader):
        if operation.model_name_lower.removesuffix("schedule") not in there:
            state: Any = SimpleNamespace(apps=adopt.models_as_they_are(loader))
            with link.schema_editor(atomic=False) as editor:
                operation.database_forwards(LABEL, editor, state, state)


def _recorded(loader: MigrationLoader) -> Iterator[MergeAndConstrain]:
    for (label, name), migration in loader.disk_migrations.items():
        if label == LABEL and (label, name) in loader.applied_migrations:
            yield from (each for each in migration.operations if isinstance(each, MergeAndConstrain))
