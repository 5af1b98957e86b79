"""A task's row in the form in which code speaks of it: every field by name, each value plain and always alike.

This form is compared, so that another way to write a zone, a blank in JSON or an empty text for NULL is no change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

from onebeat.core.recurrence import Cron
from onebeat.db import bulk_rows
from onebeat.errors import InvalidSchedule
from onebeat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
)
from onebeat.models.instants import from_utc, to_utc
from onebeat.models.schedule_value import ScheduleValue
from onebeat.models.task_rules import SCHEDULES
from onebeat.queries import task_lookup

#: The mark in `TaskOptions.origin`.
ORIGIN = "code"
SCHEDULE = "schedule"

#: What django-celery-beat writes from an entry of the settings at each start of its beat, besides the schedule.
MESSAGE_FIELDS = ("task", "args", "kwargs", "queue", "exchange", "routing_key", "priority", "headers", "expire_seconds")
TASK_FIELDS = (*MESSAGE_FIELDS, "expires", "one_off", "start_time", "enabled", "description")
OPTION_FIELDS = (
    *("missed", "grace_seconds", "jitter_seconds", "overlap", "overlap_limit_seconds"),
    *("tags", "extra"),
)
_JSON: dict[str, object] = {"args": [], "kwargs": {}, "headers": {}, "extra": {}}
_INSTANTS = ("expires", "start_time")
_KINDS: dict[str, type[ScheduleValue]] = {
    model.KIND: model for model in (IntervalSchedule, CrontabSchedule, SolarSchedule, ClockedSchedule)
}

#: Every field by name, in the plain form.
TaskValues = dict[str, Any]
#: A task with its row of options, if it has one.
StoredTask = tuple[PeriodicTask, TaskOptions | None]


def values_of(task: PeriodicTask, options: TaskOptions | None) -> TaskValues:
    """A task as it is."""
    scheduler = task.scheduler
    found: TaskValues = {SCHEDULE: None if scheduler is None else plain_schedule(scheduler)}
    found |= {name: plain(name, getattr(task, name)) for name in TASK_FIELDS}
    return found | {name: plain(name, getattr(options or TaskOptions(), name)) for name in OPTION_FIELDS}


@cache
def defaults() -> Mapping[str, object]:
    """The default of each field."""
    return values_of(PeriodicTask(), None)


def plain(name: str, value: object) -> object:
    """The value of a field in the plain form, which JSON can hold."""
    if name in _JSON:
        try:
            return json.loads(value) if isinstance(value, str) and value else (value or _JSON[name])
        except ValueError:  # written past every rule
            return value
    if isinstance(value, datetime):
        return to_utc(value).isoformat()
    return None if value == "" else value


def plain_schedule(schedule: ScheduleValue) -> list[object]:
    """The kind and the value of a schedule in the plain form."""
    values = schedule.value()
    if isinstance(schedule, CrontabSchedule):  # a row from elsewhere may be spelt otherwise
        try:
            cron = Cron(*values)
            values = (cron.minute, cron.hour, cron.day_of_month, cron.month_of_year, cron.day_of_week, cron.tz.key)
        except InvalidSchedule:
            pass
    return [schedule.KIND, *map(_part, values)]


def _part(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{value:.6f}"
    if isinstance(value, datetime):
        return to_utc(value).isoformat()
    return value if isinstance(value, int) else str(value)


def schedule(given: list[Any]) -> ScheduleValue:
    """A new object of a schedule in the plain form, not saved."""
    model, values = _KINDS[given[0]], given[1:]
    if model is ClockedSchedule:
        values = [from_utc(datetime.fromisoformat(values[0]))]
    made = model(**dict(zip(model.VALUE, values, strict=True)))
    made.clean_value()
    return made


def read(using: str, names: Iterable[str], *, lock: bool = False) -> dict[str, StoredTask]:
    """The tasks of these names that are there, with their options. `lock`: nobody changes them in this transaction."""
    found: dict[str, StoredTask] = {}
    for part in bulk_rows.portions(names):
        tasks = task_lookup.of_keys(using, part).prefetch_related(*SCHEDULES)
        here = list(tasks.select_for_update() if lock else tasks)
        options = TaskOptions.objects.using(using).in_bulk([one.pk for one in here])
        found |= {key: (one, options.get(one.pk)) for key, one in task_lookup.by_key(here, part).items()}
    return found


def create(using: str, name: str, values: Mapping[str, object]) -> PeriodicTask:
    """A new task with these fields. Raises `ValidationError`."""
    task = PeriodicTask(name=task_lookup.free_name(using, name))
    touched = _set(using, task, values)
    task.clean_fields(exclude=set(SCHEDULES))
    assert touched
    task.save(using=using, force_insert=True)
    put_options(using, task, values)
    return task


def put(using: str, task: PeriodicTask, values: Mapping[str, object]) -> None:
    """Set fields of a task that is there, and touch no other. Raises `ValidationError`."""
    if touched := _set(using, task, values):
        task.save(using=using, update_fields={*touched, "date_changed"})
    put_options(using, task, values)


def put_options(using: str, task: PeriodicTask, values: Mapping[str, object]) -> None:
    """Set what is in the task's options, and mark it as declared in code."""
    given = {name: stored(name, values[name]) for name in OPTION_FIELDS if name in values}
    found = TaskOptions.objects.using(using).filter(pk=task.pk).first() or TaskOptions(task_id=task.pk)
    if not found._state.adding and not given and found.origin == ORIGIN:
        return
    for name, value in {**given, "origin": ORIGIN}.items():
        setattr(found, name, value)
    found.save(using=using)


def _set(using: str, task: PeriodicTask, values: Mapping[str, Any]) -> set[str]:
    touched: set[str] = set()
    for name in TASK_FIELDS:
        if name in values:
            setattr(task, name, stored(name, values[name]))
            touched.add(name)
    if SCHEDULE in values:
        one: Any = schedule(values[SCHEDULE])
        one = type(one).objects.using(using).get_or_create(**dict(zip(one.VALUE, one.value(), strict=True)))[0]
        for kind in SCHEDULES:
            setattr(task, kind, one if kind == one.KIND else None)
        touched |= set(SCHEDULES)
    return touched


def stored(name: str, value: Any) -> Any:
    """A value of the plain form as the model's field takes it."""
    if name in _JSON:
        return value if isinstance(value, str) else json.dumps(value)
    if value is None and name in ("description", "tags"):
        return ""
    return from_utc(datetime.fromisoformat(value)) if name in _INSTANTS and value is not None else value
