"""Lists that take the same work however many rows there are: nothing is counted to its end, and what a page shows is
read at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import InvalidPage, Page, Paginator
from django.db import router
from django.db.models import Model, QuerySet, Value
from django.db.models.expressions import OrderBy
from django.http import HttpRequest

from onebeat.db import database_clock, schema
from onebeat.declare.overriding import overridden
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import Occurrence, PeriodicTask, TaskOptions, TaskState
from onebeat.queries import history, last_runs, task_lists

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
    Rows = QuerySet[Any]
else:
    AnyPaginator = Paginator

WAKE = "onebeat_state__wake_at"
STATE_KEY = "onebeat_state__task_id"


class BoundedPaginator(AnyPaginator):
    """Counts up to a limit and then says "more than": an exact number of a million rows helps nobody.

    What matches is looked for once, in any order and by its keys alone, as far as the limit. Only a page of it is then
    put in order and read: sorting a million rows with all their schedules beside them takes ten times as long, and a
    few matches among many rows, looked for in the list's order, would be read row by row along an index.
    """

    LIMIT = 10_000
    object_list: Rows

    @cached_property
    def _found(self) -> list[object]:
        """The keys of what matches in any order: all of them, or `LIMIT` and one more."""
        return list(self._keys().order_by()[: self.LIMIT + 1])

    def _keys(self) -> Rows:
        return self.object_list.select_related(None).values_list("pk", flat=True)

    @property
    def count(self) -> int:
        """The number of rows, `LIMIT` at most."""
        return min(len(self._found), self.LIMIT)

    @property
    def more(self) -> bool:
        """Whether there are more rows than are counted."""
        return len(self._found) > self.LIMIT

    def page(self, number: int | str) -> Page[object]:
        """One page. Its rows have been read, and come as a queryset for those who edit them in the list."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        rows = self.object_list
        fresh = _anew(rows).order_by(*rows.query.order_by)
        if start == 0 and len(self._found) <= self.per_page:
            return Page(_read(fresh.filter(pk__in=self._found)), number, self)
        if self.more:
            keys = list(self._keys()[start : start + self.per_page])
        else:
            in_order = fresh.select_related(None).filter(pk__in=self._found).values_list("pk", flat=True)
            keys = list(in_order[start : start + self.per_page])
        place = {key: at for at, key in enumerate(keys)}
        return Page(_read(fresh.order_by().filter(pk__in=keys), lambda row: place[row.pk]), number, self)


def _read(rows: Rows, place: Callable[[Model], int] | None = None) -> Rows:
    found = list(rows)
    if place is not None:
        found.sort(key=place)
        rows = rows.order_by("pk")  # of no effect any more; who edits in the list asks for some order
    rows._result_cache = found
    return rows


def _anew(rows: Rows) -> Rows:
    """All rows, read as these are: with their relations and annotations, without their filters and their order."""
    fresh: Rows = rows.model._default_manager.using(rows.db).all()
    fresh.query.select_related = rows.query.select_related
    for name, annotation in rows.query.annotations.items():
        fresh = fresh.annotate(**{name: annotation})
    return fresh


class BoundedList(ChangeList):
    """A list of which each page is read once, by the paginator. Django's own reads one that fits on a page, or is
    empty, a second time and in full.
    """

    def get_results(self, request: HttpRequest) -> None:
        """Read the page."""
        paginator = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
        count = paginator.count
        self.can_show_all = count <= self.list_max_show_all
        self.multi_page = count > self.list_per_page
        everything = self.show_all and self.can_show_all
        if everything:
            paginator.per_page = max(count, 1)
        try:
            self.result_list = paginator.page(1 if everything or not self.multi_page else self.page_num).object_list
        except InvalidPage as error:
            raise IncorrectLookupParameters from error
        self.result_count, self.paginator = count, paginator
        # None: Django then says nothing of how many there are without the filters.
        self.show_full_result_count, self.full_result_count = False, None
        self.show_admin_actions = True


class StatusOrder(Value):
    """To sort tasks by their status: stands for the database's own order until the list knows its database."""

    def __init__(self) -> None:
        super().__init__(0)


@dataclass(frozen=True, slots=True)
class Beside:
    """What a page of the list has read beside a task: the database's now, its newest occurrences, whether this app has
    registered its Celery task, and the fields that people set otherwise than its code says.
    """

    now: datetime
    recent: list[Occurrence] = field(default_factory=list)
    known: bool = True
    overrides: list[str] = field(default_factory=list)


class TaskList(BoundedList):
    """The list of tasks. Each row gets its newest occurrences, read in two statements for the whole page, and if
    code made some of them what was set otherwise here.
    """

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and what the columns show."""
        super().get_results(request)
        tasks: list[PeriodicTask] = list(self.result_list)
        using = self.root_queryset.db
        found = history.recent(using, [task.pk for task in tasks]) if schema.complete(using) else {}
        names, now = celery_app.task_names(), database_clock.now(using)
        declared = [task.name for task in tasks if getattr(options_of(task), "origin", "") == "code"]
        changed = overridden(declared, using=using) if declared else {}
        for task in tasks:
            fields = [one.field for one in changed.get(task.name, [])]
            task.__dict__["onebeat_beside"] = Beside(now, found.get(task.pk, []), task.task in names, fields)

    def get_ordering(self, request: HttpRequest, queryset: Rows) -> list[Any]:
        """The order that was asked for, in this database's words wherever the status or the next run stand in it.

        Sorted by the next run alone, the key that makes the order exact is the plan's own: only so the index gives it.
        """
        ordering = super().get_ordering(request, queryset)
        for place, each in enumerate(ordering):
            if isinstance(each, OrderBy) and isinstance(each.expression, StatusOrder):
                order = task_lists.status_order(queryset.db, database_clock.now(queryset.db))
                ordering[place] = order.desc() if each.descending else order.asc()
        if len(ordering) == 2 and str(ordering[0]).lstrip("-") == WAKE:
            ordering[1] = "-" * str(ordering[0]).startswith("-") + STATE_KEY
        return ordering

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str | None] | None = None) -> Rows:
        """The tasks to list. Sorted by the next run first, tasks without one are left out. Sorted by the last outcome,
        those are left out whose last run cannot be looked up in time.
        """
        rows = super().get_queryset(request, exclude_parameters)
        order = rows.query.order_by
        if order and str(order[0]).lstrip("-") == WAKE:
            rows = rows.filter(**{f"{WAKE}__isnull": False})
        outcome = last_runs.OutcomeRank
        if any(isinstance(each, OrderBy) and isinstance(each.expression, outcome) for each in order):
            rows = last_runs.narrowed(rows)
        return rows


class ScheduleList(BoundedList):
    """A list of schedules. Each row gets the number of tasks that use it, counted in one statement for the page."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, and the numbers."""
        super().get_results(request)
        rows: list[Model] = list(self.result_list)
        kind: str = getattr(self.model, "KIND", "")
        counts = task_lists.users(self.root_queryset.db, kind, [row.pk for row in rows])
        for row in rows:
            row.__dict__["onebeat_users"] = counts.get(row.pk, 0)


def state_of(task: PeriodicTask) -> TaskState | None:
    """The task's plan, if it was read with it and has one. Never asks the database, which may lack the table."""
    found: TaskState | None = task._state.fields_cache.get("onebeat_state")
    return found


def options_of(task: PeriodicTask) -> TaskOptions | None:
    """The task's options, if they were read with it and it has any. Never asks the database."""
    found: TaskOptions | None = task._state.fields_cache.get("onebeat_options")
    return found


def beside(task: PeriodicTask) -> Beside:
    """What the page has read beside the task; for a task that is in no list, the time alone."""
    found = task.__dict__.get("onebeat_beside")
    return (
        found
        if isinstance(found, Beside)
        else Beside(database_clock.now(task._state.db or router.db_for_read(PeriodicTask)))
    )
