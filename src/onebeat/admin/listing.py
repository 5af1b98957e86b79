"""Lists that take the same work however many rows there are: nothing is counted to its end, and what a page shows is
read at once.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator

from onebeat.admin import registered
from onebeat.store import history, vendors


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a limit and then says "more than": an exact number of a million rows helps nobody."""

    LIMIT = 10_000

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[: self.LIMIT + 1].count())

    @property
    def count(self) -> int:
        """The number of rows, `LIMIT` at most."""
        return min(self._counted, self.LIMIT)

    @property
    def more(self) -> bool:
        """Whether there are more rows than are counted."""
        return self._counted > self.LIMIT


class TaskList(ChangeList):
    """The list of tasks. Each row gets its newest occurrences, read in two statements for the whole page."""

    def get_results(self, request: Any) -> None:
        """As Django's, with what the columns show."""
        super().get_results(request)
        rows: Any = self.result_list
        tasks = list(rows)
        using = rows.db if hasattr(rows, "db") else self.root_queryset.db
        found = history.recent(using, [task.pk for task in tasks])
        names, now = registered.tasks(), vendors.now(using)
        for task in tasks:
            task.onebeat_now = now
            task.onebeat_recent = found.get(task.pk, [])
            task.onebeat_known = task.task in names or registered.known(task.task)
        self.result_list = tasks

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """As Django's. Sorted by the next run, tasks without one are left out: only so the index gives the order."""
        rows = super().get_queryset(request, exclude_parameters)
        order = [one for one in rows.query.order_by if isinstance(one, str)]
        if order and order[0].lstrip("-") == WAKE:
            down = order[0].startswith("-")
            rows = rows.filter(**{f"{WAKE}__isnull": False}).order_by(order[0], ("-" if down else "") + STATE_KEY)
        return rows


WAKE = "onebeat_state__wake_at"
STATE_KEY = "onebeat_state__task_id"


def now_of(task: Any) -> datetime:
    """The database's now when the page was read, or now."""
    found = getattr(task, "onebeat_now", None)
    return found if isinstance(found, datetime) else vendors.now(task._state.db or "default")
