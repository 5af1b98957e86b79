"""The newest occurrences of the tasks on a page: two statements however many tasks and however long the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db.models import OuterRef, Q, Subquery

from onebeat.models import Occurrence, PeriodicTask

#: How many of a task's newest occurrences are shown.
SHOWN = 30
#: How many tasks are asked about in one statement.
_PORTION = 100


def recent(using: str, tasks: Iterable[int]) -> dict[int, list[Occurrence]]:
    """The newest occurrences of each of these tasks, the oldest of them first; a task without any is not in it."""
    ids = list(tasks)
    found: defaultdict[int, list[Occurrence]] = defaultdict(list)
    for start in range(0, len(ids), _PORTION):
        _read(using, ids[start : start + _PORTION], found)
    return found


def _read(using: str, ids: list[int], found: dict[int, list[Occurrence]]) -> None:
    # First where each task's last SHOWN begin, by the unique key alone; then everything from there on. One statement
    # with a window would read the whole history of each task.
    own = Occurrence.objects.filter(task_id=OuterRef("pk")).order_by("-due_at").values("due_at")
    first, last = own[SHOWN - 1 : SHOWN], own[:1]
    rows = PeriodicTask._base_manager.using(using).filter(pk__in=ids)
    bounds = rows.annotate(onebeat_first=Subquery(first), onebeat_last=Subquery(last))
    parts = []
    for key, since, newest in bounds.values_list("pk", "onebeat_first", "onebeat_last"):
        if newest is not None:
            parts.append(Q(task_id=key) if since is None else Q(task_id=key, due_at__gte=since))
    if not parts:
        return
    for one in Occurrence.objects.using(using).filter(reduce(or_, parts)).order_by("task_id", "due_at", "run"):
        found[one.task_id].append(one)
    for key in ids:
        if key in found:
            found[key] = found[key][-SHOWN:]
