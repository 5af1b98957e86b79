"""Run a task now, beside its schedule."""

from __future__ import annotations

from onebeat.db import database_clock
from onebeat.store import manual_runs, plans
from onebeat.store.manual_runs import Run
from onebeat.verbs import records
from onebeat.verbs.base import One, do, task_of, who_is


def run_now(one: One, why: str = "", *, by: object = None, using: str | None = None) -> Run:
    """Run a task once, now, beside its schedule, which does not move. Also a task that is disabled or paused.

    It is the message that the scheduler would send, sent by a scheduler within its poll interval; the answer names the
    id that the message will have. Two calls are two runs. Raises `UnknownTask`.
    """

    def work(alias: str) -> Run:
        now, (task, name) = database_clock.now(alias), task_of(alias, one)
        who = who_is(by)
        detail = ": ".join(filter(None, [f"asked for by {who}" if who else "asked for", why]))
        run = manual_runs.ask(alias, task, name, plans.uid(alias, task, name, now), now, now, detail)
        records.record(alias, "run_now", {task: name}, who, why, str(run.celery_task_id), now)
        return run

    return do(using, work)
