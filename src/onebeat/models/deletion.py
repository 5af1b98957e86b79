"""What deleting a schedule does to the tasks that use it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db import models
from django.db.models.deletion import Collector, ProtectedError


def with_its_one_task(collector: Collector, field: Any, sub_objs: Any, using: str) -> None:
    """`on_delete`: a schedule takes its task along when one task uses it, and is kept when several do.

    Common code deletes the schedule in order to delete the task; nobody who deletes a shared schedule means three
    tasks. Raises `ProtectedError` naming the tasks.
    """
    users: dict[Any, list[models.Model]] = defaultdict(list)
    for task in sub_objs:
        users[getattr(task, field.attname)].append(task)
    shared = [task for tasks in users.values() if len(tasks) > 1 for task in tasks]
    if shared:
        names = ", ".join(repr(getattr(task, "name", task.pk)) for task in shared)
        raise ProtectedError(
            f"{len(shared)} tasks use this {field.remote_field.model._meta.verbose_name}: {names}. "
            "Give them another schedule or delete them first.",
            set(shared),
        )
    models.CASCADE(collector, field, sub_objs, using)
