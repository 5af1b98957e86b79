"""Pause and resume tasks. Whoever does it holds the plans of the tasks meanwhile: schedulers go on with the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce

from onebeat.core import catchup, planning
from onebeat.core.planning import State
from onebeat.core.reasons import Reason
from onebeat.core.text import all_paused, by_whom
from onebeat.db import bulk_rows, database_clock
from onebeat.errors import InvalidArgument
from onebeat.models import Occurrence, TaskOptions, TaskState
from onebeat.models.instants import UTCDateTimeField
from onebeat.queries import task_lookup
from onebeat.queries.task_lookup import Named
from onebeat.store import definitions, global_pause, manual_runs, occurrences, task_states
from onebeat.store.definitions import Definition
from onebeat.verbs import records
from onebeat.verbs.base import All, Which, do, instant, tasks_of, who_is

CatchUp = Literal["none", "latest", "all"]


#: How many nominal times of one task are caught up at most.
CATCH_UP_LIMIT = 1000


_FOR_EVER = datetime.max.replace(tzinfo=UTC)


def pause(
    which: Which,
    why: str = "",
    until: datetime | timedelta | None = None,
    *,
    by: object = None,
    using: str | None = None,
) -> int:
    """Send nothing of a task (by its name), of all with a tag, or of `ALL`, until resumed.

    `until`: the pause ends by itself then: an aware datetime, or a timedelta from now. Times that pass in the pause are
    recorded as skipped, with their reason. Seen by schedulers within their poll interval. The pause of `ALL` is one of
    its own, beside those of single tasks, and holds for tasks that are made later. Returns how many tasks it paused.
    Raises `UnknownTask`.
    """

    def work(alias: str) -> int:
        now = database_clock.now(alias)
        end = None if until is None else instant("until", until, now)
        who, detail = who_is(by), f"until {end.isoformat()}" if end else ""
        of = None if isinstance(which, All) else tasks_of(alias, which)
        records.record(alias, "pause", of, who, why, detail, now)
        if of is None:
            return _pause_all(alias, end, why, who)
        _pause(alias, of, end, why, who, now)
        return len(of)

    return do(using, work)


def resume(
    which: Which,
    *,
    catch_up: CatchUp = "none",
    why: str = "",
    by: object = None,
    using: str | None = None,
) -> int:
    """End the pause of a task, of all with a tag, or the one of `ALL`. Returns how many were paused.

    `catch_up`: what becomes of the times that the pause has skipped: "none" leaves them skipped, "latest" runs the
    newest one, "all" runs each, up to 1,000 of a task. They run as numbers of their own beside the record of the skip,
    whatever the policy says of late times. Raises `UnknownTask`, and `ValueError` if there are too many to catch up.
    """
    if catch_up not in ("none", "latest", "all"):
        raise InvalidArgument(f'catch_up: "none", "latest" or "all" is needed, not {catch_up!r}')

    def work(alias: str) -> int:
        now, who = database_clock.now(alias), who_is(by)
        of = None if isinstance(which, All) else tasks_of(alias, which)
        records.record(alias, "resume", of, who, why, f"catch_up {catch_up}", now)
        if of is None:
            return _resume_all(alias, catch_up, who, now)
        return _resume(alias, of, catch_up, who, now)

    return do(using, work)


def _pause(using: str, of: Named, until: datetime | None, why: str, by: str, now: datetime) -> None:
    """Pause these tasks. One that is paused already stays paused since it was, and gets the new end and reason."""
    paused = Q(paused=True) & (Q(paused_until=None) | Q(paused_until__gt=now))
    since = Case(When(paused, then=F("paused_at")), default=Value(now, output_field=UTCDateTimeField()))
    for part in bulk_rows.portions(of):
        # In this order: MySQL computes each value from those to its left that it has set already.
        records.with_options(using, part).update(
            paused_at=since, paused=True, paused_until=until, paused_why=why, paused_by=by
        )


def _resume(using: str, of: Named, catch_up: CatchUp, by: str, now: datetime) -> int:
    """End the pause of these tasks; returns how many were paused. Times that passed in it are decided now if no
    scheduler has, so that none of them is sent as late. Raises `InvalidArgument` if there are too many to catch up.
    """
    done = 0
    for part in bulk_rows.portions(of):
        states = task_states.hold(using, part)
        paused = TaskOptions.objects.using(using).filter(pk__in=part, paused=True)
        since = dict(paused.values_list("pk", "paused_at"))
        found = definitions.fetch(using, since)
        for task, begun in since.items():
            definition, state = found.get(task), states.get(task)
            if definition is None or state is None:
                continue
            words = f"paused{by_whom(definition.paused_by, definition.paused_why)}"
            state = _pass(using, definition, state, definition.policy.paused_until or now, words, now)
            if catch_up != "none":
                _catch_up(using, definition, state, begun, catch_up, by, now)
        done += paused.update(paused=False, paused_until=None, paused_why="", paused_by="", paused_at=None)
    return done


def _pause_all(using: str, until: datetime | None, why: str, by: str) -> int:
    """Pause everything, also what is made later. Returns how many tasks there are."""
    global_pause.pause_all(using, by=by, why=why, until=until)
    return task_lookup.tasks(using).count()


def _resume_all(using: str, catch_up: CatchUp, by: str, now: datetime) -> int:
    """End the pause of everything; a task that is paused by itself stays so. Returns how many tasks it concerned."""
    pause = global_pause.global_pause(using, now)
    if pause is not None:
        due = TaskState.objects.using(using).filter(wake_at__lte=now)
        ids = set(due.values_list("pk", flat=True))
        if catch_up != "none":
            skipped = _skipped(using).filter(last__gte=pause.since).order_by()
            ids |= set(skipped.values_list("task_id", flat=True).distinct())
        for part in bulk_rows.portions(ids):
            states, found = task_states.hold(using, part), definitions.fetch(using, part)
            for task in part:
                definition, state = found.get(task), states.get(task)
                if definition is None or state is None:
                    continue
                state = _pass(using, definition, state, pause.until or _FOR_EVER, all_paused(pause.by, pause.why), now)
                own = definition.policy.paused_until
                if catch_up != "none" and (own is None or own <= now):
                    _catch_up(using, definition, state, pause.since, catch_up, by, now)
    return task_lookup.tasks(using).count() if global_pause.resume_all(using) and pause is not None else 0


def _pass(using: str, definition: Definition, state: State, until: datetime, detail: str, now: datetime) -> State:
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


def _catch_up(
    using: str,
    definition: Definition,
    state: State,
    since: datetime | None,
    catch_up: CatchUp,
    by: str,
    now: datetime,
) -> None:
    for due_at in _passed(using, definition, state, since, catch_up):
        manual_runs.ask(
            using,
            definition.id,
            definition.name,
            state.uid,
            due_at,
            now,
            f"caught up after a pause{f' by {by}' if by else ''}",
        )


def _skipped(using: str) -> models.QuerySet[Any, Any]:
    """The times that a pause has skipped, with the `last` of each range."""
    skipped = Occurrence.objects.using(using).filter(run=0, state=Occurrence.State.SKIPPED, reason=Reason.PAUSED)
    return skipped.annotate(last=Coalesce("last_due_at", "due_at"))


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
                raise InvalidArgument(
                    f"catch_up: the pause of {definition.name!r} has skipped more than {CATCH_UP_LIMIT} times; "
                    'catch_up="latest" runs the newest of them'
                )
    return found
