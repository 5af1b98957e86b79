"""Which tasks a name or a tag means, past anybody's default manager, and names that are near a mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from django.db import models

from onebeat.core import keys
from onebeat.db import expressions, transactions
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


def find(using: str, key: str) -> tuple[int, str] | None:
    """The primary key and the name of the row that has a key, compared byte by byte; None if there is none."""
    asked = keys.names([key]) if expressions.folds_texts(using) else [key]
    rows = tasks(using).filter(name__in=asked).values_list("pk", "name")
    found = _first(rows, key)
    if found is None and transactions.snapshot_may_hide_rows(using) and transactions.in_transaction(using):
        found = _first(rows.select_for_update(), key)
    return found


def _first(rows: Iterable[tuple[int, str]], key: str) -> tuple[int, str] | None:
    found = {name: (pk, name) for pk, name in rows if keys.has(name, key)}
    return found.get(key) or next(iter(found.values()), None)


def has_key(using: str, column: str, key: str) -> models.Q:
    """The condition that a column of names has one of a row of this key."""
    same = expressions.same_text(using, column, key)
    return same | models.Q(**{column: keys.suffixed(key)}) if expressions.folds_texts(using) else same


def of_keys(using: str, asked: Collection[str]) -> models.QuerySet[PeriodicTask]:
    """The tasks that may have these keys; `by_key` says which has which."""
    return tasks(using).filter(name__in=keys.names(asked) if expressions.folds_texts(using) else list(asked))


def by_key(rows: Iterable[PeriodicTask], asked: Iterable[str]) -> dict[str, PeriodicTask]:
    """Which of the rows has each key, compared byte by byte."""
    by_name = {row.name: row for row in rows}
    found = ((key, by_name.get(key) or by_name.get(keys.suffixed(key))) for key in (asked if by_name else ()))
    return {key: row for key, row in found if row is not None}


def free_name(using: str, key: str) -> str:
    """The name for a new row of this key: the key itself, or with a suffix where another key's row has that name. A row
    of the key's own, which another process may just have made, is no reason for a second one.
    """
    if not expressions.folds_texts(using):
        return key
    names = tasks(using).filter(name=key).values_list("name", flat=True)
    return keys.suffixed(key) if any(not keys.has(name, key) for name in names) else key


def named(using: str, name: str) -> tuple[int, str]:
    """As `find`. Raises `UnknownTask` if there is none."""
    found = find(using, name)
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
