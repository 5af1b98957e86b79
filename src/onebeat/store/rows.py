"""What the verbs read and write of people's tables: which tasks are meant, their options, and who did what to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from onebeat.core.errors import UnknownTask
from onebeat.models import Action, PeriodicTask, TaskOptions
from onebeat.models.options import split_tags
from onebeat.store import vendors

#: How many rows one statement names.
PORTION = 1000
#: How many names are looked at for near ones, and how many are listed.
_LOOKED_AT, _LISTED = 5000, 3

Named = dict[int, str]
K = TypeVar("K")


@contextmanager
def change(using: str) -> Iterator[None]:
    """The transaction of one verb: the caller's own if there is one, else a short one."""
    with vendors.writing(using) if vendors.in_transaction(using) else vendors.short_transaction(using):
        if not vendors.may_read_first(using):
            with vendors.connection(using).cursor() as cursor:  # touches nothing, and takes SQLite's write lock
                cursor.execute(f"DELETE FROM {vendors.quoted(using, Action._meta.db_table)} WHERE 1 = 0")
        yield


def tasks(using: str) -> models.QuerySet[PeriodicTask]:
    """Every task, past anybody's default manager."""
    rows: models.QuerySet[PeriodicTask] = PeriodicTask._base_manager.using(using)
    return rows


def named(using: str, name: str) -> tuple[int, str]:
    """The key and the name of the task of this name. Raises `UnknownTask`."""
    found = tasks(using).filter(name=name).values_list("pk", "name").first()
    if found is None:
        raise UnknownTask(name, near(name, tasks(using).values_list("name", flat=True)))
    return found


def tagged(using: str, tag: str) -> Named:
    """The tasks that have this tag. Raises `UnknownTask` if none has."""
    rows = TaskOptions.objects.using(using).filter(tags__contains=tag).order_by("pk")
    # A database may take small and capital letters for the same, and "mail" is part of "email".
    found = {pk: name for pk, name, tags in rows.values_list("pk", "task__name", "tags") if tag in split_tags(tags)}
    if not found:
        texts = TaskOptions.objects.using(using).exclude(tags="").values_list("tags", flat=True)[:_LOOKED_AT]
        raise UnknownTask(f"tagged {tag}", near(tag, (one for text in texts for one in split_tags(text))))
    return found


def near(name: str, names: Any) -> list[str]:
    """Those of `names` (a queryset of texts, or texts) that a mistyped `name` may mean."""
    if isinstance(names, models.QuerySet):
        start = names.filter(name__istartswith=name[:2]).order_by("name")[:_LOOKED_AT]
        names = [*start, *names.order_by("name")[:_LOOKED_AT]]
    folded = {one.casefold(): one for one in names}
    return [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, n=_LISTED)]


def portions(ids: Iterable[K]) -> Iterator[list[K]]:
    """Keys in order, in parts of one statement each."""
    ordered = sorted(ids)  # type: ignore[type-var]
    for start in range(0, len(ordered), PORTION):
        yield ordered[start : start + PORTION]


def insertable(using: str, instances: Sequence[models.Model]) -> tuple[dict[str, str], list[list[Any]]]:
    """Columns with their types, and values, to insert new instances of one model with.

    They come from the same code: columns that the first leaves to the database's default are left out of all.
    """
    link, first = vendors.connection(using), instances[0]
    fields: list[Any] = []
    template: list[Any] = []
    for field in first._meta.local_concrete_fields:
        value: Any = field.pre_save(first, True)
        if not (hasattr(value, "as_sql") or (field.primary_key and value is None)):
            fields.append(field)
            template.append(field.get_db_prep_save(value, link))
    attributes = [(field, field.attname, getattr(first, field.attname)) for field in fields]
    rows = [template]
    for instance in instances[1:]:
        row, given = list(template), instance.__dict__
        for number, (field, name, value) in enumerate(attributes):
            if getattr(field, "auto_now", False):
                given[name] = value
            elif given[name] != value:
                row[number] = field.get_db_prep_save(field.pre_save(instance, True), link)
        rows.append(row)
    return {field.column: field.db_type(link) for field in fields}, rows


def insert(using: str, instances: Sequence[models.Model], unique: Sequence[str]) -> None:
    """Insert new instances of one model, without signals; one whose `unique` columns are taken is left out."""
    if instances:
        columns, values = insertable(using, instances)
        vendors.insert_or_lose(using, instances[0]._meta.db_table, columns, values, unique)


def with_options(using: str, ids: Iterable[int]) -> models.QuerySet[TaskOptions]:
    """The options of these tasks, which get a row with the defaults where they have none."""
    ids = list(ids)
    there = set(TaskOptions.objects.using(using).filter(pk__in=ids).values_list("pk", flat=True))
    insert(using, [TaskOptions(task_id=pk) for pk in ids if pk not in there], ["task_id"])
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
