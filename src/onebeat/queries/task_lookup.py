"""Which tasks a name or a tag means, past anybody's default manager, and names that are near a mistyped one."""

from __future__ import annotations

import difflib
from typing import Any

from django.db import models

from onebeat.errors import UnknownTask
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.options import split_tags

#: How many names are looked at for near ones, and how many are listed.
_LOOKED_AT, _LISTED = 5000, 3


Named = dict[int, str]


def tasks(using: str) -> models.QuerySet[PeriodicTask]:
    """Every task, past anybody's default manager."""
    rows: models.QuerySet[PeriodicTask] = PeriodicTask._base_manager.using(using)
    return rows


def named(using: str, name: str) -> tuple[int, str]:
    """The key and the name of the task of this name. Raises `UnknownTask`."""
    found = tasks(using).filter(name=name).values_list("pk", "name").first()
    if found is None:
        raise unknown(using, name)
    return found


def unknown(using: str, name: str) -> UnknownTask:
    """The error that says that no task has this name, with those that are near it."""
    return UnknownTask(name, near(name, tasks(using).values_list("name", flat=True)))


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
