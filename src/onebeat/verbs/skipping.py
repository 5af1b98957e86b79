"""Take one nominal time of a task out of its schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.core import catchup
from onebeat.core import nominal_times as rules
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Recurrence
from onebeat.db import database_clock
from onebeat.errors import NoSuchTime, Unschedulable
from onebeat.models import Occurrence
from onebeat.store import definitions, occurrences, plans, task_states
from onebeat.store.definitions import Definition
from onebeat.verbs import records
from onebeat.verbs.base import One, do, instant, task_of, who_is

_TICK = timedelta(microseconds=1)


def skip(one: One, at: datetime, why: str = "", *, by: object = None, using: str | None = None) -> bool:
    """Take one nominal time of a task out of its schedule; the others stay. `at` is aware and exact.

    Returns whether it came in time: False if that time has been decided before. Raises `UnknownTask`, and `ValueError`
    if the schedule has no such time, naming the next one it has.
    """

    def work(alias: str) -> bool:
        now, (task, name) = database_clock.now(alias), task_of(alias, one)
        when = instant("at", at, now)
        done = _skip(alias, task, when, why, who_is(by), now)
        if done:
            records.record(alias, "skip", {task: name}, who_is(by), why, when.isoformat(), now)
        return done

    return do(using, work)


def _skip(using: str, task: int, at: datetime, why: str, by: str, now: datetime) -> bool:
    """Take one nominal time of a task out. Returns False if it was decided before.

    Raises `NoSuchTime` if the schedule has no such time, and `Unschedulable` if the task cannot be planned.
    """
    state = task_states.hold(using, [task]).get(task)
    definition = definitions.fetch(using, [task]).get(task) or definitions.gone(task, "")
    if definition.broken:
        raise Unschedulable(definition.broken)
    recurrence = definition.check(state.anchor if state else plans.changes(using, [definition], now)[task].first)
    _on_schedule(definition, recurrence, at)
    if state is not None and state.water_mark is not None and at <= state.water_mark:
        return False
    known = Occurrence.objects.using(using).filter(task_uid=state.uid if state else 0, due_at=at, run=0)
    if known.exists():
        return False
    detail = ": ".join(filter(None, [f"skipped{f' by {by}' if by else ''}", why]))
    uid = state.uid if state else plans.uid(using, task, definition.name, now)
    occurrences.skip(using, [occurrences.Skipped(definition, uid, catchup.Skip(at, at, Reason.CANCELLED), detail)], now)
    return True


def _on_schedule(definition: Definition, recurrence: Recurrence, at: datetime) -> None:
    starts, ends = definition.starts(), definition.ends()
    inside = (starts is None or at >= starts) and (ends is None or at <= ends)
    if recurrence.after(at - _TICK) == at and inside:
        return
    after = rules.first(recurrence, at, start_time=starts, expires=ends)
    near = f"the next one is {after.isoformat()}" if after else "none follows"
    raise NoSuchTime(f"at: {definition.name!r} has no time {at.isoformat()} on its schedule; {near}")
