"""Write what the verbs record: the options of tasks, and who did what to them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models

from onebeat.db.bulk_rows import PORTION
from onebeat.db.upserts import insert_instances
from onebeat.models import Action, TaskOptions
from onebeat.queries.task_lookup import Named


def with_options(using: str, ids: Iterable[int]) -> models.QuerySet[TaskOptions]:
    """The options of these tasks, which get a row with the defaults where they have none."""
    ids = list(ids)
    there = set(TaskOptions.objects.using(using).filter(pk__in=ids).values_list("pk", flat=True))
    insert_instances(using, [TaskOptions(task_id=pk) for pk in ids if pk not in there], ["task_id"])
    return TaskOptions.objects.using(using).filter(pk__in=ids)


def record(using: str, verb: str, of: Named | None, by: str, why: str, detail: str, now: datetime) -> None:
    """Record who did what to these tasks (None: to all) and why."""
    done: list[tuple[int | None, str]] = [*of.items()] if of is not None else [(None, "")]
    Action.objects.using(using).bulk_create(
        [
            Action(at=now, verb=verb, task_id=pk, task_name=name, by=by[:200], why=why, detail=detail)
            for pk, name in done
        ],
        batch_size=PORTION,
    )
