"""Pause and resume tasks. Whoever does it holds the plans of the tasks meanwhile: schedulers go on with the others."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.db.models import Case, F, Q, Value, When

from onebeat.core.text import by_whom
from onebeat.db import bulk_rows, database_clock
from onebeat.errors import InvalidArgument
from onebeat.models import TaskOptions
from onebeat.models.instants import UTCDateTimeField
from onebeat.queries import task_lookup
from onebeat.queries.task_lookup import Named
from onebeat.store import definitions, global_pause, task_states
from onebeat.verbs import records, resuming
from onebeat.verbs.base import All, Which, do, instant, tasks_of, who_is
from onebeat.verbs.resuming import CatchUp


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
    recorded as skipped, with their reason. Seen by schedulers within their poll interval. The pause of `ALL` is
    separate from those of single tasks, and holds for tasks that are made later. Returns how many tasks it paused.
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
    newest one, "all" runs each, up to 1,000 of a task. They become manual runs beside the record of the skip,
    whatever the policy says of late times. Raises `UnknownTask`, and `ValueError` if there are too many to catch up.

    Outside your transaction many tasks are resumed in portions, each of its own: schedulers go on meanwhile. One that
    was broken off is completed by calling it again: no time is caught up twice.
    """
    if catch_up not in ("none", "latest", "all"):
        raise InvalidArgument(f'catch_up: "none", "latest" or "all" is needed, not {catch_up!r}')
    if isinstance(which, All):
        return resuming.resume_all(catch_up, why, who_is(by), using)
    parts = list(bulk_rows.portions(do(using, lambda alias: tasks_of(alias, which)).items()))

    def work(alias: str, part: list[tuple[int, str]]) -> int:
        now, of = database_clock.now(alias), dict(part)
        records.record(alias, "resume", of, who_is(by), why, f"catch_up {catch_up}", now)
        return _resume(alias, of, catch_up, who_is(by), now)

    if catch_up == "all" and len(parts) > 1:  # what is refused is refused as a whole
        for part in parts:
            do(using, partial(_check, of=dict(part)))
    return sum(do(using, partial(work, part=part)) for part in parts)


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
    """End the pause of a portion of tasks; returns how many were paused. Times that passed in it are decided now if no
    scheduler has, so that none of them is sent as late. Raises `InvalidArgument` if there are too many to catch up.
    """
    states = task_states.hold(using, of)
    paused = TaskOptions.objects.using(using).filter(pk__in=list(of), paused=True)
    since = dict(paused.values_list("pk", "paused_at"))
    found = definitions.fetch(using, since)
    for task, begun in since.items():
        definition, state = found.get(task), states.get(task)
        if definition is None or state is None:
            continue
        words = f"paused{by_whom(definition.paused_by, definition.paused_why)}"
        state = resuming.decide(using, definition, state, definition.policy.paused_until or now, words, now)
        if catch_up != "none":
            resuming.run_again(using, definition, state, begun, catch_up, by, now)
    return paused.update(paused=False, paused_until=None, paused_why="", paused_by="", paused_at=None)


def _check(using: str, of: Named) -> None:
    paused = TaskOptions.objects.using(using).filter(pk__in=list(of), paused=True)
    resuming.check(using, of, dict(paused.values_list("pk", "paused_at")))


def _pause_all(using: str, until: datetime | None, why: str, by: str) -> int:
    """Pause everything, also what is made later. Returns how many tasks there are."""
    global_pause.pause_all(using, by=by, why=why, until=until)
    return task_lookup.tasks(using).count()
