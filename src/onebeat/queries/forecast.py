"""What is to come, for all tasks together: counted by schedule, since a million tasks share a few rules.

Bounded: beyond so many schedules, or so many single tasks, the rest is left out and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min

from onebeat.core.load_curve import MINUTE, Load
from onebeat.core.recurrence import Interval, Recurrence
from onebeat.db import database_clock
from onebeat.errors import InvalidSchedule
from onebeat.models import CrontabSchedule, IntervalSchedule, SolarSchedule, TaskState
from onebeat.models.schedule_value import ScheduleValue

#: How many schedules of a kind are drawn, those with the most tasks first.
SCHEDULES = 300
#: How many one-off runs are drawn.
SINGLES = 20_000
#: How many runs are walked in all: about a second of work.
WALKED = 150_000
WEEK = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class Ahead:
    """The load of the next week, and whether some schedules or one-offs are not in it."""

    load: Load
    schedules_left_out: bool
    singles_left_out: bool


def ahead(using: str) -> Ahead:
    """The load of the next seven days from the minute that runs now."""
    now = database_clock.now(using)
    load = Load(now.replace(second=0, microsecond=0), WEEK)
    waiting = TaskState.objects.using(using).filter(wake_at__isnull=False, wake_at__lt=load.end)
    singles = list(waiting.filter(one_off=True).order_by("wake_at").values_list("due_at", flat=True)[: SINGLES + 1])
    for due_at in singles[:SINGLES]:
        if due_at is not None:
            load.at(due_at)
    left_out = False
    walked = 0
    for model in (CrontabSchedule, SolarSchedule, IntervalSchedule):
        kind = model.KIND
        rows = list(
            waiting.filter(one_off=False, **{f"{kind}__isnull": False})
            .order_by()
            .values(kind)
            .annotate(tasks=Count("pk"), first=Min("due_at"), last=Max("due_at"))
            .order_by("-tasks", F(kind))[: SCHEDULES + 1]
        )
        left_out |= len(rows) > SCHEDULES
        rules = _rules(model._base_manager.using(using).filter(pk__in=[row[kind] for row in rows]), now)
        for row in rows[:SCHEDULES]:
            rule = rules.get(row[kind])
            if rule is None:
                continue
            if walked >= WALKED:
                left_out = True
            elif isinstance(rule, Interval):
                walked += _spread(load, rule, row)
            else:
                walked += load.rule(rule, row["tasks"], WALKED - walked)
    return Ahead(load, left_out, len(singles) > SINGLES)


def _spread(load: Load, rule: Interval, row: dict[str, Any]) -> int:
    """Tasks on one interval have each a grid of their own: a grid for all is drawn as it is, many evenly over the
    period, and so is one with more than a run a minute.
    """
    if rule.period > MINUTE and row["first"] == row["last"]:
        return load.rule(Interval(rule.period, row["first"]), row["tasks"], WALKED)
    load.every_minute(row["tasks"] * (MINUTE / rule.period))
    return 0


def _rules(rows: Iterable[ScheduleValue], now: datetime) -> dict[object, Recurrence]:
    """The rules of these rows by key. A row that holds no rule is left out: its tasks are quarantined."""
    found = {}
    for row in rows:
        with suppress(InvalidSchedule):
            found[row.pk] = row.recurrence(now)
    return found
