"""Tasks that belong to a row of a model: deleting the row deletes them in the same commit."""

from __future__ import annotations

from typing import TypeVar

from django.db import models, router
from django.db.models import signals

from onebeat.db import expressions, schema
from onebeat.errors import InvalidArgument

M = TypeVar("M", bound=models.Model)

#: The labels of the models whose deletions are watched.
_watched: set[str] = set()


def linked(model: type[M]) -> type[M]:
    """Class decorator of a model: `once(..., for_=row)` may then name its rows, and deleting a row deletes its tasks.

    In the same transaction, also by `queryset.delete()` and by a cascade: for that, Django reads the rows that it
    deletes, which costs one indexed look for each. What is deleted by SQL takes nothing along. Without the decorator,
    deletions of the model are as fast as ever, and `for_` is refused.
    """
    _watched.add(_label(model))
    _connect(model)
    return model


def link_to(row: models.Model | None) -> str:
    """A row as `TaskOptions.link` has it; "" for None. Raises `InvalidArgument` for one that cannot be followed."""
    if row is None:
        return ""
    if not isinstance(row, models.Model) or row.pk is None:
        raise InvalidArgument(f"for_: a saved row of a model is needed, not {row!r}")
    if _label(type(row)) not in _watched:
        name = type(row).__name__
        raise InvalidArgument(f"for_: {name} is not linked; put @onebeat.linked above `class {name}(...)`")
    return f"{_label(type(row))}:{row.pk}"


def _label(model: type[models.Model]) -> str:
    concrete = model._meta.concrete_model
    assert concrete is not None
    return concrete._meta.label_lower


def _connect(model: type[models.Model]) -> None:
    signals.post_delete.connect(_deleted, sender=model, dispatch_uid=f"onebeat linked {model._meta.label_lower}")


def _prepared(sender: type[models.Model], **kwargs: object) -> None:
    # A proxy is a sender of its own.
    if sender._meta.proxy and _label(sender) in _watched:
        _connect(sender)


def _deleted(sender: type[models.Model], instance: models.Model, **kwargs: object) -> None:
    from onebeat.models import PeriodicTask, TaskOptions

    using = router.db_for_write(PeriodicTask)
    table = TaskOptions._meta.db_table
    if not schema.complete(using) and {table, f"{table}.link"} & set(schema.lacking(using)):
        return  # no task is linked yet
    link = f"{_label(sender)}:{instance.pk}"
    same = expressions.same_text(using, "link", link)
    tasks = list(TaskOptions.objects.using(using).filter(same).values_list("pk", flat=True))
    if tasks:
        PeriodicTask._base_manager.using(using).filter(pk__in=tasks).delete()


signals.class_prepared.connect(_prepared)
