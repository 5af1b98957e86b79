"""Pause, resume, and skipping one nominal time. Whoever does it holds the tasks' plans meanwhile: schedulers go on with
the others.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce

from onebeat.core import catchup
from onebeat.core import plan as rules
from onebeat.core.recurrence import Recurrence
from onebeat.models import Occurrence, TaskOptions, TaskState
from onebeat.models.instants import UTCDateTimeField
from onebeat.store import byhand, definitions, ledger, pauses, plan, rows, states
from onebeat.store.definitions import BadDefinition, Definition
from onebeat.store.rows import Named
from onebeat.store.states import State

CatchUp = Literal["none", "latest", "all"]

#: How many nominal times of one task are caught up at most.
CATCH_UP_LIMIT = 1000

_TICK = timedelta(microseconds=1)
_FOR_EVER = datetime.max.replace(tzinfo=UTC)


def pause(using: str, of: Named, until: datetime | None, why: str, by: str, now: datetime) -> None:
    """Pause these tasks. One that is paused already stays paused since it was, and gets the new end and reason."""
    paused = Q(paused=True) & (Q(paused_until=None) | Q(paused_until__gt=now))
    since = Case(When(paused, then=F("paused_at")), default=Value(now, output_field=UTCDateTimeField()))
    for part in rows.portions(of):
        # In this order: MySQL computes each value from those to its left that it has set already.
        rows.with_options(using, part).update(
            paused_at=since, paused=True, paused_until=until, paused_why=why, paused_by=by
        )


def resume(using: str, of: Named, catch_up: CatchUp, by: str, now: datetime) -> int:
    """End the pause of these tasks; returns how many were paused. Times that passed in it are decided now if no
    scheduler has, so that none of them is sent as late. Raises `ValueError` if there are too many to catch up.
    """
    done = 0
    for part in rows.portions(of):
        held = states.hold(using, part)
        paused = TaskOptions.objects.using(using).filter(pk__in=part, paused=True)
        since = dict(paused.values_list("pk", "paused_at"))
        found = definitions.fetch(using, since)
        for task, begun in since.items():
            definition, state = found.get(task), held.get(task)
            if definition is None or state is None:
                continue
            words = f"paused{pauses.words(definition.paused_by, definition.paused_why)}"
            state = _pass(using, definition, state, definition.policy.paused_until or now, words, now)
            if catch_up != "none":
                _catch_up(using, definition, state, begun, catch_up, by, now)
        done += paused.update(paused=False, paused_until=None, paused_why="", paused_by="", paused_at=None)
    return done


def pause_all(using: str, until: datetime | None, why: str, by: str) -> int:
    """Pause everything, also what is made later. Returns how many tasks there are."""
    pauses.pause_all(using, by=by, why=why, until=until)
    return rows.tasks(using).count()


def resume_all(using: str, catch_up: CatchUp, by: str, now: datetime) -> int:
    """End the pause of everything; a task that is paused by itself stays so. Returns how many tasks it concerned."""
    pause = pauses.global_pause(using, now)
    if pause is not None:
        due = TaskState.objects.using(using).filter(wake_at__lte=now)
        ids = set(due.values_list("pk", flat=True))
        if catch_up != "none":
            skipped = _skipped(using).filter(last__gte=pause.since).order_by()
            ids |= set(skipped.values_list("task_id", flat=True).distinct())
        for part in rows.portions(ids):
            held, found = states.hold(using, part), definitions.fetch(using, part)
            for task in part:
                definition, state = found.get(task), held.get(task)
                if definition is None or state is None:
                    continue
                state = _pass(using, definition, state, pause.until or _FOR_EVER, pause.words(), now)
                own = definition.policy.paused_until
                if catch_up != "none" and (own is None or own <= now):
                    _catch_up(using, definition, state, pause.since, catch_up, by, now)
    return rows.tasks(using).count() if pauses.resume_all(using) and pause is not None else 0


def _pass(using: str, definition: Definition, state: State, until: datetime, detail: str, now: datetime) -> State:
    """Record the times up to now of a task that is paused until then as skipped, as a scheduler would, and move its
    plan on."""
    recurrence = plan.as_planned(definition, state)
    if recurrence is None or state.due_at is None or state.due_at > now or until <= now:
        return state
    policy = replace(definition.policy, paused_until=_FOR_EVER)
    decision = catchup.decide(
        recurrence, state.due_at, now, policy, missed_before=now, expires=definition.ends(), one_off=definition.one_off
    )
    ledger.skip(using, [ledger.Skipped(definition, one, detail) for one in decision.skips], now)
    after = plan.waiting(state, definition, recurrence, decision.due_at, now)
    after = replace(after, water_mark=max((one.last for one in decision.skips), default=state.water_mark))
    states.write(using, [after], plan=False)
    return after


def _catch_up(
    using: str,
    definition: Definition,
    state: State,
    since: datetime | None,
    catch_up: CatchUp,
    by: str,
    now: datetime,
) -> None:
    for instant in _passed(using, definition, state, since, catch_up):
        byhand.ask(using, definition.id, definition.name, instant, now, f"caught up after a pause{_by(by)}")


def _skipped(using: str) -> models.QuerySet[Any, Any]:
    """The times that a pause has skipped, with the `last` of each range."""
    skipped = Occurrence.objects.using(using).filter(run=0, state=Occurrence.State.SKIPPED, reason=catchup.PAUSED)
    return skipped.annotate(last=Coalesce("through", "due_at"))


def _passed(
    using: str, definition: Definition, state: State, since: datetime | None, catch_up: CatchUp
) -> list[datetime]:
    """The nominal times that a pause since then has skipped: the newest one, or all."""
    ended = _skipped(using).filter(task_id=definition.id).order_by("-due_at")
    ranges = list(
        (ended.filter(last__gte=since) if since else ended[:1]).values_list("due_at", "last")[:CATCH_UP_LIMIT]
    )
    if catch_up == "latest" or not ranges:
        return [max(last for _, last in ranges)] if ranges else []
    recurrence = definition.check(state.anchor)
    found: list[datetime] = []
    for first, last in reversed(ranges):
        at: datetime | None = first
        while at is not None and at <= last:
            if since is None or at >= since:
                found.append(at)
            at = recurrence.after(at)
            if len(found) > CATCH_UP_LIMIT:
                raise ValueError(
                    f"catch_up: the pause of {definition.name!r} has skipped more than {CATCH_UP_LIMIT} times; "
                    'catch_up="latest" runs the newest of them'
                )
    return found


def skip(using: str, task: int, at: datetime, why: str, by: str, now: datetime) -> bool:
    """Take one nominal time of a task out. Returns False if it was decided before.

    Raises `ValueError` if the schedule has no such time, naming the next one, or if the task cannot be planned.
    """
    state = states.hold(using, [task]).get(task)
    definition = definitions.fetch(using, [task]).get(task) or definitions.gone(task, "")
    if definition.broken:
        raise BadDefinition(definition.broken)
    recurrence = definition.check(state.anchor if state else plan.noticed(using, [definition], now)[task].first)
    _on_schedule(definition, recurrence, at)
    if state is not None and state.water_mark is not None and at <= state.water_mark:
        return False
    known = Occurrence.objects.using(using).filter(task_id=task, due_at=at, run=0)
    if known.exists():
        return False
    detail = ": ".join(filter(None, [f"skipped{_by(by)}", why]))
    ledger.skip(using, [ledger.Skipped(definition, catchup.Skip(at, at, "cancelled"), detail)], now)
    return True


def _on_schedule(definition: Definition, recurrence: Recurrence, at: datetime) -> None:
    starts, ends = definition.starts(), definition.ends()
    inside = (starts is None or at >= starts) and (ends is None or at <= ends)
    if recurrence.after(at - _TICK) == at and inside:
        return
    after = rules.first(recurrence, at, start_time=starts, expires=ends)
    near = f"the next one is {after.isoformat()}" if after else "none follows"
    raise ValueError(f"at: {definition.name!r} has no time {at.isoformat()} on its schedule; {near}")


def _by(by: str) -> str:
    return f" by {by}" if by else ""
