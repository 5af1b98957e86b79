"""What becomes of the times that a pause has skipped, and the end of the pause of everything.

That concerns every task, so it goes in portions, each a transaction of its own unless the caller has one: schedulers
decide about a task between two of them. What is still to be caught up is a row of the database: whoever calls next
completes what was broken off, and each portion is done once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from django.db import models
from django.db.models.functions import Coalesce

from onebeat.core import catchup, planning
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.core.text import all_paused
from onebeat.db import bulk_rows, database_clock
from onebeat.errors import InvalidArgument, Unschedulable
from onebeat.models import Fact, Occurrence, TaskState
from onebeat.queries import task_lookup
from onebeat.store import definitions, global_pause, manual_runs, occurrences, task_states
from onebeat.store.definitions import Definition
from onebeat.verbs import records
from onebeat.verbs.base import do

logger = logging.getLogger("onebeat")

CatchUp = Literal["none", "latest", "all"]
#: How many nominal times of one task are caught up at most.
CATCH_UP_LIMIT = 1000

_FOR_EVER = datetime.max.replace(tzinfo=UTC)
#: What is left to be caught up of a pause of everything that has ended.
_FACT = "catching_up"
#: How often is looked for what came due in the meantime, before the rest is decided with the end itself.
_ROUNDS = 10


def resume_all(catch_up: CatchUp, why: str, by: str, using: str | None) -> int:
    """End the pause of everything; a task that is paused by itself stays so. Returns how many tasks it concerned, also
    if it only completed the catching-up of an earlier call. Raises `InvalidArgument` if a task has too much of it.
    """
    completed = _finish(using)
    seen: datetime | None = None
    for _ in range(_ROUNDS):
        now, due = do(using, partial(_due, seen=seen))
        if len(due) <= bulk_rows.PORTION:
            break
        for part in bulk_rows.portions(due):
            do(using, partial(_decide_paused, part=part))
        seen = now
    if catch_up == "all":
        place: int | None = 0
        while place is not None:
            place = do(using, partial(_check_all, place=place))
    ended = do(using, partial(_end, catch_up=catch_up, why=why, by=by, seen=seen))
    _finish(using)
    return ended or completed


def _due(using: str, seen: datetime | None) -> tuple[datetime, list[int]]:
    """Now, and the tasks that are due and that nobody has decided about; those since `seen`, if it is given."""
    now = database_clock.now(using)
    due = TaskState.objects.using(using).filter(wake_at__lte=now)
    return now, list((due.filter(wake_at__gt=seen) if seen else due).values_list("pk", flat=True))


def _decide_paused(using: str, part: Collection[int]) -> None:
    now = database_clock.now(using)
    if (pause := global_pause.global_pause(using, now)) is None:
        return
    states, found = task_states.hold(using, part), definitions.fetch(using, part)
    for task, state in states.items():
        if (definition := found.get(task)) is not None:
            decide(using, definition, state, pause.until or _FOR_EVER, all_paused(pause.by, pause.why), now)


def _check_all(using: str, place: int) -> int | None:
    """Whether the tasks of a portion have too much to catch up. Returns where the next one begins; None at the end."""
    pause = global_pause.global_pause(using, database_clock.now(using))
    tasks = _portion(using, place)
    if pause is not None:
        check(using, tasks, dict.fromkeys(tasks, pause.since))
    return tasks[-1] if pause is not None and tasks else None


def _end(using: str, catch_up: CatchUp, why: str, by: str, seen: datetime | None) -> int:
    """End the pause. What came due since `seen` is decided with it, so that none of it is sent as late."""
    now, due = _due(using, seen)
    records.record(using, "resume", None, by, why, f"catch_up {catch_up}", now)
    pause = global_pause.global_pause(using, now)
    for part in bulk_rows.portions(due):
        _decide_paused(using, part)
    if not global_pause.resume_all(using) or pause is None:
        return 0
    if catch_up != "none":
        left = {"since": pause.since.isoformat(), "until": "", "catch_up": catch_up, "by": by, "place": 0}
        Fact.objects.using(using).create(name=_FACT, value=json.dumps(left))
    return task_lookup.tasks(using).count()


def _finish(using: str | None) -> int:
    """Catch up what is left of a pause that has ended. Returns how many tasks there are, if anything was left."""
    done = 0
    while (runs := do(using, _catch_up_portion)) is not None:
        done = done or do(using, lambda alias: task_lookup.tasks(alias).count())
        logger.info("catching up after the pause of everything: %d more runs", runs)
    return done


def _catch_up_portion(using: str) -> int | None:
    """Catch up the next portion. Returns how many runs that made; None: nothing is left."""
    rows = Fact.objects.using(using).filter(name=_FACT)
    # A lock on a row that is not there would close a gap on MySQL.
    fact = rows.select_for_update().first() if rows.exists() else None
    if fact is None:
        return None
    left, now = json.loads(fact.value), database_clock.now(using)
    left["until"] = left["until"] or now.isoformat()
    since, until = datetime.fromisoformat(left["since"]), datetime.fromisoformat(left["until"])
    tasks, runs = _portion(using, left["place"]), 0
    passed = _skipped(using).filter(task_id__in=tasks, last__gte=since, due_at__lte=until).order_by()
    states, found = (
        task_states.read(using, tasks),
        definitions.fetch(using, set(passed.values_list("task_id", flat=True))),
    )
    left["place"] = tasks[-1] if tasks else None
    for task in sorted(found):
        if runs >= bulk_rows.PORTION:
            left["place"] = task - 1
            break
        own = found[task].policy.paused_until
        if task in states and (own is None or own <= now):
            runs += run_again(using, found[task], states[task], since, left["catch_up"], left["by"], now, until=until)
    if left["place"] is None:
        rows.delete()
    else:
        rows.update(value=json.dumps(left))
    return runs


def _portion(using: str, place: int) -> list[int]:
    states = TaskState.objects.using(using).filter(pk__gt=place).order_by("pk")
    return list(states.values_list("pk", flat=True)[: bulk_rows.PORTION])


def decide(using: str, definition: Definition, state: State, until: datetime, detail: str, now: datetime) -> State:
    """Record the times up to now of a task that is paused until then as skipped, as a scheduler would, and move its
    plan on."""
    recurrence = planning.as_planned(definition, state)
    if recurrence is None or state.due_at is None or state.due_at > now or until <= now:
        return state
    policy = replace(definition.policy, paused_until=_FOR_EVER)
    decision = catchup.decide(
        recurrence, state.due_at, now, policy, missed_before=now, expires=definition.ends(), one_off=definition.one_off
    )
    occurrences.skip(using, [occurrences.Skipped(definition, state.uid, one, detail) for one in decision.skips], now)
    after = planning.waiting(state, definition, recurrence, decision.due_at, now)
    after = replace(after, water_mark=max((one.last for one in decision.skips), default=state.water_mark))
    task_states.write(using, [after], plan=False)
    return after


def check(using: str, tasks: Collection[int], since: dict[int, datetime | None] | dict[int, datetime]) -> None:
    """Raise `InvalidArgument` if one of these tasks, paused since then, has more to catch up than is allowed."""
    states, found = task_states.read(using, tasks), definitions.fetch(using, tasks)
    for task in sorted(states.keys() & found.keys() & since.keys()):
        _passed(using, found[task], states[task], since[task], "all", None)


def run_again(
    using: str,
    definition: Definition,
    state: State,
    since: datetime | None,
    catch_up: CatchUp,
    by: str,
    now: datetime,
    *,
    until: datetime | None = None,
) -> int:
    """Ask for runs of the times that a pause has skipped. Returns how many. `until`: only those up to then, and as many
    as there are. Raises `InvalidArgument`."""
    times = _passed(using, definition, state, since, catch_up, until)
    words = f"caught up after a pause{f' by {by}' if by else ''}"
    for due_at in times:
        manual_runs.ask(using, definition.id, definition.name, state.uid, due_at, now, words)
    return len(times)


def _skipped(using: str) -> models.QuerySet[Any, Any]:
    """The times that a pause has skipped, with the `last` of each range."""
    skipped = Occurrence.objects.using(using).filter(run=0, state=Occurrence.State.SKIPPED, reason=Reason.PAUSED)
    return skipped.annotate(last=Coalesce("last_due_at", "due_at"))


def _passed(
    using: str,
    definition: Definition,
    state: State,
    since: datetime | None,
    catch_up: CatchUp,
    until: datetime | None,
) -> list[datetime]:
    """The nominal times that a pause since then has skipped: the newest one, or all."""
    ended = _skipped(using).filter(task_id=definition.id, task_uid=state.uid).order_by("-due_at")
    if until is not None:
        ended = ended.filter(due_at__lte=until)
    rows = (ended.filter(last__gte=since) if since else ended[:1]).values_list("due_at", "last")
    ranges = list(rows if until else rows[: CATCH_UP_LIMIT + 1])  # one more shows that there are too many
    if catch_up == "latest" or not ranges:
        return [max(last for _, last in ranges)] if ranges else []
    try:
        recurrence = definition.check(state.anchor)
    except Unschedulable:  # its runs could not be sent
        return []
    found: list[datetime] = []
    for first, last in reversed(ranges):
        at: datetime | None = first
        while at is not None and at <= last:
            if since is None or at >= since:
                found.append(at)
            at = recurrence.after(at)
            if until is None and len(found) > CATCH_UP_LIMIT:
                raise InvalidArgument(
                    f"catch_up: the pause of {definition.name!r} has skipped more than {CATCH_UP_LIMIT} times; "
                    'catch_up="latest" runs the newest of them'
                )
    return found
