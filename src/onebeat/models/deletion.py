"""What deleting a schedule does to the tasks that use it, and deleting a task to its options."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import models
from django.db.models.deletion import Collector, ProtectedError

from onebeat.db import schema
from onebeat.models import change_hints


def with_its_one_task(collector: Collector, field: Any, sub_objs: Any, using: str) -> None:
    """`on_delete`: a schedule takes its task along when one task uses it, and is kept when several do.

    Common code deletes the schedule in order to delete the task; nobody who deletes a shared schedule means three
    tasks. Raises `ProtectedError` naming the tasks.
    """
    users: dict[object, list[models.Model]] = defaultdict(list)
    for task in sub_objs:
        users[getattr(task, field.attname)].append(task)
    shared = [task for tasks in users.values() if len(tasks) > 1 for task in tasks]
    if shared:
        raise ProtectedError("several tasks use it", set(shared))
    models.CASCADE(collector, field, sub_objs, using)


def if_there(collector: Collector, field: Any, sub_objs: Any, using: str) -> None:
    """`on_delete` of a table of ours: CASCADE, once `migrate` has made the table."""
    if not schema.there(using, field.model._meta.db_table):
        return
    if not schema.complete(using):  # the table of an older onebeat lacks columns that Django would read
        sub_objs = sub_objs.only(field.attname)
    models.CASCADE(collector, field, sub_objs, using)


# Django would look for rows before it calls this.
if_there.lazy_sub_objs = True  # type: ignore[attr-defined]


def record_hints(using: str, done: tuple[int, dict[str, int]]) -> tuple[int, dict[str, int]]:
    """Let it be known that something was deleted; gives back Django's count."""
    if done[0]:
        change_hints.deleted(using)
    return done


@contextmanager
def naming_tasks(model: type[models.Model]) -> Iterator[None]:
    """The error of a refused deletion with the tasks' names in it; Django's collector drops the words it was given."""
    try:
        yield
    except ProtectedError as error:
        names = sorted(str(getattr(task, "name", task)) for task in error.protected_objects)
        shown = ", ".join(map(repr, names[:10])) + (" and more" if len(names) > 10 else "")
        raise ProtectedError(
            f"{len(names)} tasks share this {model._meta.verbose_name}: {shown}. "
            "Give them another schedule or delete them first.",
            error.protected_objects,
        ) from error
