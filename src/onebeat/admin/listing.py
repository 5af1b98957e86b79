"""Lists that take the same work however many rows there are: nothing is counted to its end, and what a page shows is
read at once.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import Count, QuerySet

from onebeat.admin import registered
from onebeat.models import PeriodicTask
from onebeat.store import history, migrated, vendors

WAKE = "onebeat_state__wake_at"
STATE_KEY = "onebeat_state__task_id"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a limit and then says "more than": an exact number of a million rows helps nobody.

    A page is looked up by its keys alone, in the list's order, and only then read: sorting a million rows with all
    their schedules beside them takes ten times as long. What fits on the first page needs no count at all.
    """

    LIMIT = 10_000

    @cached_property
    def _first(self) -> list[Any]:
        """The keys of the first page, and one more if there are more.

        Asked for in any order first: few matches among many rows are found by one pass over the table, while the
        list's order would have it read row by row along an index.
        """
        rows, end = self._keys(), self.per_page + 1
        few = list(rows.order_by()[:end])
        return list(rows.filter(pk__in=few) if len(few) < end else rows[:end])

    @cached_property
    def _counted(self) -> int:
        if len(self._first) <= self.per_page:
            return len(self._first)
        rows: Any = self.object_list
        return int(rows.order_by()[: self.LIMIT + 1].count())

    def _keys(self) -> Any:
        rows: Any = self.object_list
        return rows.select_related(None).values_list("pk", flat=True)

    @property
    def count(self) -> int:
        """The number of rows, `LIMIT` at most."""
        return min(self._counted, self.LIMIT)

    @property
    def more(self) -> bool:
        """Whether there are more rows than are counted."""
        return self._counted > self.LIMIT

    def page(self, number: Any) -> Any:
        """As Django's."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        keys = self._first[: self.per_page] if number == 1 else list(self._keys()[start : start + self.per_page])
        rows: Any = self.object_list
        found = {row.pk: row for row in _anew(rows).filter(pk__in=keys)}
        return Page([found[key] for key in keys if key in found], number, self)


def _anew(rows: QuerySet[Any]) -> QuerySet[Any]:
    """All rows, read as these are: with their relations and annotations, without their filters and their order."""
    fresh: QuerySet[Any] = rows.model._default_manager.using(rows.db).all()
    fresh.query.select_related = rows.query.select_related
    for name, annotation in rows.query.annotations.items():
        fresh = fresh.annotate(**{name: annotation})
    return fresh


class TaskList(ChangeList):
    """The list of tasks. Each row gets its newest occurrences, read in two statements for the whole page."""

    def get_results(self, request: Any) -> None:
        """As Django's, with what the columns show."""
        super().get_results(request)
        tasks: list[Any] = list(self.result_list)
        using = self.root_queryset.db
        found = history.recent(using, [task.pk for task in tasks]) if migrated.complete(using) else {}
        names, now = registered.names(), vendors.now(using)
        for task in tasks:
            task.onebeat_now = now
            task.onebeat_recent = found.get(task.pk, [])
            task.onebeat_known = task.task in names
        self.result_list = tasks

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """As Django's. Sorted by the next run, tasks without one are left out: only so the index gives the order."""
        rows = super().get_queryset(request, exclude_parameters)
        order = [one for one in rows.query.order_by if isinstance(one, str)]
        if order and order[0].lstrip("-") == WAKE:
            down = order[0].startswith("-")
            rows = rows.filter(**{f"{WAKE}__isnull": False}).order_by(order[0], ("-" if down else "") + STATE_KEY)
        return rows


class ScheduleList(ChangeList):
    """A list of schedules. Each row gets the number of tasks that use it, counted in one statement for the page."""

    def get_results(self, request: Any) -> None:
        """As Django's, with the numbers."""
        super().get_results(request)
        rows: list[Any] = list(self.result_list)
        model: Any = self.model
        kind = model.KIND
        users = PeriodicTask._base_manager.using(self.root_queryset.db).filter(**{f"{kind}__in": rows})
        counts = dict(users.order_by().values_list(kind).annotate(n=Count("pk")))
        for row in rows:
            row.onebeat_users = counts.get(row.pk, 0)
        self.result_list = rows


def beside(task: Any, name: str) -> Any:
    """The task's state or options, if it was read with them and has any. Never asks the database: it may lack them."""
    return task._state.fields_cache.get(name)


def now_of(task: Any) -> datetime:
    """The database's now when the page was read, or now."""
    found = getattr(task, "onebeat_now", None)
    return found if isinstance(found, datetime) else vendors.now(task._state.db or "default")
