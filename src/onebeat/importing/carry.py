"""Rows from elsewhere compared with the tasks that are here, and written if asked.

A portion is one transaction: a crash leaves it done or undone, and the next run does the rest. Where a portion fails,
its rows are tried one by one, so that one stops no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from django.core.exceptions import ValidationError
from django.db import DatabaseError, DataError, IntegrityError

from onebeat.db import transactions
from onebeat.importing.rows import RUN_STATE, Refused, Row, one_line
from onebeat.models import PeriodicTask, TaskOptions
from onebeat.models.schedule_value import ScheduleValue
from onebeat.models.task_rules import JSON_FIELDS, SCHEDULES
from onebeat.queries import task_lookup

_PORTION = 500
#: The task's row of options, if it has one.
_OPTIONS = "onebeat_options"
#: How often a row is tried that somebody else is making at the same moment.
_TRIES = 3
_WRONG = (IntegrityError, DataError, ValidationError, ValueError, OverflowError)

Outcome = Literal["new", "replaced", "same", "kept", "refused"]


@dataclass(frozen=True, slots=True)
class Result:
    """What becomes of a row, or became of it. `new` and `replaced`: it is written. `same`: it is here already. `kept`:
    another task of its name is here and stays. `refused`: it cannot be carried. `why` is empty for the new and the
    same.
    """

    name: str
    outcome: Outcome
    why: str = ""
    notes: tuple[str, ...] = ()
    what: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    row: Row
    #: The task of its name.
    here: PeriodicTask | None
    differs: tuple[str, ...]
    result: Result

    @property
    def writes(self) -> bool:
        return self.result.outcome in ("new", "replaced")


def carry(using: str, rows: Iterable[Row | Refused], *, apply: bool, replace: bool) -> Iterator[Result]:
    """Yields a result for each row; writes to the database `using` only with `apply`.

    A task of the same name that is here is left as it is, unless `replace`. Then it gets all that the row says, but its
    `last_run_at` and run count only if they are further than its own.
    """
    rest = iter(rows)
    while portion := list(islice(rest, _PORTION)):
        plans: dict[str, _Plan] = {}
        readable = [row for row in portion if isinstance(row, Row)]
        for plan in _portion(using, readable, apply, replace):
            plans[plan.row.name] = plan
        for row in portion:
            if isinstance(row, Refused):
                yield Result(row.name, "refused", row.why)
            elif row.name in plans:  # a source may name one twice
                yield plans.pop(row.name).result


def _portion(using: str, rows: Sequence[Row], apply: bool, replace: bool) -> list[_Plan]:
    if not apply:
        return _planned(using, rows, replace)
    try:
        return transactions.retrying(using, lambda: _written(using, rows, replace))
    except _WRONG:
        return [_alone(using, row, replace) for row in rows]


def _alone(using: str, row: Row, replace: bool) -> _Plan:
    for _ in range(_TRIES):
        try:
            return transactions.retrying(using, lambda: _written(using, [row], replace))[0]
        except _WRONG as error:
            why = one_line(error) if isinstance(error, ValidationError) else f"the database refuses it: {error}"
    return _Plan(row, None, (), Result(row.name, "refused", " ".join(why.split())))


def _planned(using: str, rows: Sequence[Row], replace: bool) -> list[_Plan]:
    names = [row.name for row in rows]
    here = task_lookup.by_key(task_lookup.of_keys(using, names).select_related(*SCHEDULES, _OPTIONS), names)
    return [_plan(row, here.get(row.name), replace) for row in {row.name: row for row in rows}.values()]


def _plan(row: Row, here: PeriodicTask | None, replace: bool) -> _Plan:
    differs = () if here is None else tuple(_differences(row, here))
    outcome: Outcome = "new" if here is None else "same"
    why = ""
    if differs:
        outcome = "replaced" if replace else "kept"
        why = f"another {', '.join(differs)} here"
    return _Plan(row, here, differs, Result(row.name, outcome, why, row.notes, str(row)))


def _differences(row: Row, here: PeriodicTask) -> Iterator[str]:
    """What the row says otherwise than the task that is here."""
    chosen = [kind for kind in SCHEDULES if getattr(here, f"{kind}_id") is not None]
    moved = chosen != [row.model.KIND] or here.scheduler is None or here.scheduler.value() != tuple(row.value.values())
    if moved:
        yield "schedule"
    finished = here.one_off and not here.enabled and here.total_run_count > 0 and not moved
    for name, value in row.fields.items():
        if name in RUN_STATE:
            own = getattr(here, name)
            if value and (not own or value > own):
                yield name
        # That a one-off has run here is no difference.
        elif not _alike(name, value, getattr(here, name)) and not (name == "enabled" and finished):
            yield name
    if dict(row.extra) != _extra(here):
        yield "extra"


def _extra(task: PeriodicTask) -> object:
    """The options of the task's messages for which it has no column; a text that cannot be read as it is."""
    options = getattr(task, _OPTIONS, None)
    text = options.extra if options is not None else ""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _alike(name: str, one: Any, other: Any) -> bool:
    if one == other or name not in JSON_FIELDS:
        return bool(one == other)
    try:
        return bool(json.loads(one or "null") == json.loads(other or "null"))
    except ValueError:
        return False


def _written(using: str, rows: Sequence[Row], replace: bool) -> list[_Plan]:
    """As `_planned`, and done."""
    with transactions.short_transaction(using):
        plans = _planned(using, rows, replace)
        todo = [plan for plan in plans if plan.writes]
        schedules = _found_or_made(
            using, [plan.row for plan in todo if plan.here is None or "schedule" in plan.differs]
        )
        made = [(plan.row, plan.row.task(schedules[plan.row.name])) for plan in todo if plan.here is None]
        for row, task in made:
            task.name = task_lookup.free_name(using, row.name)
        if made:
            PeriodicTask.objects.using(using).bulk_create([task for _, task in made])
            TaskOptions.objects.using(using).bulk_create(
                TaskOptions(task=task, extra=json.dumps(row.extra)) for row, task in made if row.extra
            )
        for plan in todo:
            if plan.here is not None:
                _replace(using, plan, plan.here, schedules.get(plan.row.name))
    return plans


def _found_or_made(using: str, rows: Sequence[Row]) -> dict[str, ScheduleValue]:
    """For each row by name the schedule of its value: the one that is here, or a new one."""
    made = {row.name: row.schedule() for row in rows}
    for model in {row.model for row in rows}:
        model._default_manager.using(using).bulk_create([one for one in made.values() if type(one) is model])
    return made


def _replace(using: str, plan: _Plan, task: PeriodicTask, schedule: ScheduleValue | None) -> None:
    if "extra" in plan.differs:
        options = getattr(task, _OPTIONS, None) or TaskOptions(task=task)
        options.extra = json.dumps(dict(plan.row.extra))
        options.save(using=using)
    touched = {"date_changed", *plan.differs} - {"schedule", "extra"}
    if schedule is not None:
        touched |= set(SCHEDULES)
        for kind in SCHEDULES:
            setattr(task, kind, schedule if kind == schedule.KIND else None)
    for name in plan.differs:
        if name not in ("schedule", "extra"):
            setattr(task, name, plan.row.fields[name])
    try:
        task.save(using=using, update_fields=touched)
    except DatabaseError as error:
        if error.__cause__ is not None:
            raise
        # Django's own: somebody has deleted it since it was read. So it is a new one.
        raise IntegrityError("the task went while it was replaced") from error
