"""The record of a take-over, kept in the engine's table of facts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from django.apps import apps as installed
from django.apps.registry import Apps

from onebeat.db import schema
from onebeat.takeover.arrive import foresee
from onebeat.takeover.arrive.merge import MergeReport
from onebeat.takeover.arrive.tables import ScheduleTable

_PREFIX = "adopted_"
#: The fact that the crontab rows of this database have not been read as Celery read them yet.
_TO_READ = "crontabs_to_read"


# Any: a manager of a model as the tables are, which the type checker does not know.
def _facts(using: str, registry: Apps) -> Any:
    return registry.get_model(schema.LABEL, "Fact")._base_manager.using(using)


def put(using: str, registry: Apps, name: str, value: object) -> None:
    """Write a fact. `registry` has the models as the tables are."""
    _facts(using, registry).update_or_create(name=name, defaults={"value": json.dumps(value)})


def keep_merge(table: ScheduleTable, registry: Apps, report: MergeReport) -> None:
    """Keep the report in the database, joined with that of an earlier run that was stopped."""
    if table.kind == "crontab":
        put(table.using, registry, _TO_READ, "every row that is there was made before the take-over")
    if not (report.respelled or report.merged):
        return
    name = _PREFIX + table.kind
    for text in _facts(table.using, registry).filter(name=name).values_list("value", flat=True):
        old = json.loads(text)
        kept = Counter({row["id"]: row["merged"] for row in old["kept"]})
        report.add(MergeReport(old["respelled"], old["merged"], kept, Counter(old["repointed"])))
    put(table.using, registry, name, foresee.as_json(table, report))


def crontabs_to_read(using: str, registry: Apps) -> bool:
    """Whether the crontab rows have not been read as Celery read them since they were merged."""
    return bool(_facts(using, registry).filter(name=_TO_READ).exists())


def crontabs_are_read(using: str, registry: Apps) -> None:
    """Remember that they have been."""
    _facts(using, registry).filter(name=_TO_READ).delete()


def recorded(using: str) -> dict[str, object]:
    """What was merged when this database was taken over, by kind; {} if nothing was, or it is not migrated yet."""
    if not schema.has_table(using, "onebeat_fact"):
        return {}
    rows = _facts(using, installed).filter(name__startswith=_PREFIX).values_list("name", "value")
    return {name.removeprefix(_PREFIX): json.loads(value) for name, value in rows}
