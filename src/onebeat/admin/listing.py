"""Lists that take the same work however many rows there are: nothing is counted to its end, and what a page shows is
read at once.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import InvalidPage, Page, Paginator
from django.db.models import Count, QuerySet, Value
from django.db.models.expressions import OrderBy

from onebeat.db import database_clock, schema
from onebeat.declare.overriding import overridden
from onebeat.dispatch.celery import app as celery_app
from onebeat.models import PeriodicTask
from onebeat.queries import history, last_runs

WAKE = "onebeat_state__wake_at"
STATE_KEY = "onebeat_state__task_id"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts up to a limit and then says "more than": an exact number of a million rows helps nobody.

    What matches is looked for once, in any order and by its keys alone, as far as the limit. Only a page of it is then
    put in order and read: sorting a million rows with all their schedules beside them takes ten times as long, and a
    few matches among many rows, looked for in the list's order, would be read row by row along an index.
    """

    LIMIT = 10_000

    @cached_property
    def _found(self) -> list[Any]:
        """The keys of what matches in any order: all of them, or `LIMIT` and one more."""
        return list(self._keys().order_by()[: self.LIMIT + 1])

    def _keys(self) -> Any:
        rows: Any = self.object_list
        return rows.select_related(None).values_list("pk", flat=True)

    @property
    def count(self) -> int:
        """The number of rows, `LIMIT` at most."""
        return min(len(self._found), self.LIMIT)

    @property
    def more(self) -> bool:
        """Whether there are more rows than are counted."""
        return len(self._found) > self.LIMIT

    def page(self, number: Any) -> Any:
        """As Django's. The rows have been read, and come as a queryset for those who edit them in the list."""
        number = self.validate_number(number)
        start = (number - 1) * self.per_page
        rows: Any = self.object_list
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


def _read(rows: Any, place: Any = None) -> Any:
    found = list(rows)
    if place is not None:
        found.sort(key=place)
        rows = rows.order_by("pk")  # of no effect any more; who edits in the list asks for some order
    rows._result_cache = found
    return rows


def _anew(rows: QuerySet[Any]) -> QuerySet[Any]:
    """All rows, read as these are: with their relations and annotations, without their filters and their order."""
    fresh: QuerySet[Any] = rows.model._default_manager.using(rows.db).all()
    fresh.query.select_related = rows.query.select_related
    for name, annotation in rows.query.annotations.items():
        fresh = fresh.annotate(**{name: annotation})
    return fresh


class BoundedList(ChangeList):
    """A list of which each page is read once, by the paginator. Django's own reads one that fits on a page, or is
    empty, a second time and in full.
    """

    def get_results(self, request: Any) -> None:
        """As Django's."""
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


class Rank(Value):
    """To sort tasks by their status: stands for the admin's `ranked` until the list knows its database."""


class TaskList(BoundedList):
    """The list of tasks. Each row gets its newest occurrences, read in two statements for the whole page, and if
    code made some of them what was set otherwise here.
    """

    def get_results(self, request: Any) -> None:
        """As Django's, with what the columns show."""
        super().get_results(request)
        tasks: Any = self.result_list
        using = self.root_queryset.db
        found = history.recent(using, [task.pk for task in tasks]) if schema.complete(using) else {}
        names, now = celery_app.task_names(), database_clock.now(using)
        declared = [task.name for task in tasks if getattr(beside(task, "onebeat_options"), "origin", "") == "code"]
        changed = overridden(declared, using=using) if declared else {}
        for task in tasks:
            task.onebeat_now = now
            task.onebeat_recent = found.get(task.pk, [])
            task.onebeat_known = task.task in names
            task.onebeat_overrides = [one.field for one in changed.get(task.name, [])]

    def get_queryset(self, request: Any, exclude_parameters: Any = None) -> Any:
        """As Django's. Sorted by the next run, tasks without one are left out: only so the index gives the order. By
        the last outcome, those are left out whose last run cannot be told in time.
        """
        rows = super().get_queryset(request, exclude_parameters)
        first, *_ = rows.query.order_by or [""]
        if isinstance(first, str) and first.lstrip("-") == WAKE:
            down = "-" if first.startswith("-") else ""
            return rows.filter(**{f"{WAKE}__isnull": False}).order_by(first, down + STATE_KEY)
        if isinstance(first, OrderBy) and isinstance(first.expression, last_runs.OutcomeRank):
            return last_runs.narrowed(rows)
        ranked = getattr(self.model_admin, "ranked", None)
        if ranked and isinstance(first, OrderBy) and isinstance(first.expression, Rank):
            found = ranked(rows.db)
            return rows.order_by(found.desc() if first.descending else found.asc(), *rows.query.order_by[1:])
        return rows


class ScheduleList(BoundedList):
    """A list of schedules. Each row gets the number of tasks that use it, counted in one statement for the page."""

    def get_results(self, request: Any) -> None:
        """As Django's, with the numbers."""
        super().get_results(request)
        rows: Any = self.result_list
        model: Any = self.model
        kind = model.KIND
        users = PeriodicTask._base_manager.using(self.root_queryset.db).filter(
            **{f"{kind}__in": [row.pk for row in rows]}
        )
        counts = dict(users.order_by().values_list(kind).annotate(n=Count("pk")))
        for row in rows:
            row.onebeat_users = counts.get(row.pk, 0)


def beside(task: Any, name: str) -> Any:
    """The task's state or options, if it was read with them and has any. Never asks the database: it may lack them."""
    return task._state.fields_cache.get(name)


def now_of(task: Any) -> datetime:
    """The database's now when the page was read, or now."""
    found = getattr(task, "onebeat_now", None)
    return found if isinstance(found, datetime) else database_clock.now(task._state.db or "default")
