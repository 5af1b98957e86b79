"""What people and programs do with tasks that are there: pause, resume, skip one time, run now."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.store import byhand, pausing, rows, vendors
from onebeat.store.byhand import Run
from onebeat.store.pausing import CatchUp
from onebeat.verbs.base import All, One, Which, do, instant, task_of, tasks_of, who_is


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
        now = vendors.now(alias)
        end = None if until is None else instant("until", until, now)
        who, detail = who_is(by), f"until {end.isoformat()}" if end else ""
        of = None if isinstance(which, All) else tasks_of(alias, which)
        rows.record(alias, "pause", of, who, why, detail, now)
        if of is None:
            return pausing.pause_all(alias, end, why, who)
        pausing.pause(alias, of, end, why, who, now)
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
        raise ValueError(f'catch_up: "none", "latest" or "all" is needed, not {catch_up!r}')

    def work(alias: str) -> int:
        now, who = vendors.now(alias), who_is(by)
        of = None if isinstance(which, All) else tasks_of(alias, which)
        rows.record(alias, "resume", of, who, why, f"catch_up {catch_up}", now)
        if of is None:
            return pausing.resume_all(alias, catch_up, who, now)
        return pausing.resume(alias, of, catch_up, who, now)

    return do(using, work)


def skip(one: One, at: datetime, why: str = "", *, by: object = None, using: str | None = None) -> bool:
    """Take one nominal time of a task out of its schedule; the others stay. `at` is aware and exact.

    Returns whether it came in time: False if that time has been decided before. Raises `UnknownTask`, and `ValueError`
    if the schedule has no such time, naming the next one it has.
    """

    def work(alias: str) -> bool:
        now, (task, name) = vendors.now(alias), task_of(alias, one)
        when = instant("at", at, now)
        done = pausing.skip(alias, task, when, why, who_is(by), now)
        if done:
            rows.record(alias, "skip", {task: name}, who_is(by), why, when.isoformat(), now)
        return done

    return do(using, work)


def run_now(one: One, why: str = "", *, by: object = None, using: str | None = None) -> Run:
    """Run a task once, now, beside its schedule, which does not move. Also a task that is disabled or paused.

    It is the message that the scheduler would send, sent by a scheduler within its poll interval; the answer names the
    id that the message will have. Two calls are two runs. Raises `UnknownTask`.
    """

    def work(alias: str) -> Run:
        now, (task, name) = vendors.now(alias), task_of(alias, one)
        who = who_is(by)
        detail = ": ".join(filter(None, [f"asked for by {who}" if who else "asked for", why]))
        run = byhand.ask(alias, task, name, now, now, detail)
        rows.record(alias, "run_now", {task: name}, who, why, str(run.celery_task_id), now)
        return run

    return do(using, work)
