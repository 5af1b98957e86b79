"""`onebeat import` killed in the middle, and two of them at once, on each database."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from tests.processes import run_python
from tests.scratch import Scratch

COUNT, PORTION = 60, 8


def story(index: int) -> list[dict[str, Any]]:
    """In another process: what an import left that was killed in its fourth portion, and four at once after it."""
    told = [forked([4]), content()]
    told += [forked([0, 0, 0, 0]), content()]
    return told


def forked(deaths: list[int]) -> dict[str, Any]:
    """Imports at once, one in a process of its own for each number: the portion that it does not survive, or 0.

    Returns how many came to an end and what they say they made.
    """
    from django.db import connections

    connections.close_all()
    children = []
    for dies_in in deaths:
        out, answer = os.pipe()
        if not (pid := os.fork()):
            os.close(out)
            os.write(answer, json.dumps(carried(dies_in)).encode())
            os._exit(0)
        os.close(answer)
        children.append((pid, out))
    found = []
    for pid, out in children:
        with os.fdopen(out) as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        found += [json.loads(text)] if text else []
    return {"ended": len(found), "failed": sum(one["code"] for one in found), "new": sum(one["new"] for one in found)}


def carried(dies_in: int) -> dict[str, int]:
    """Import COUNT tasks; with `dies_in`, SIGKILL in that portion, written and not committed."""
    from onebeat.importing import carry
    from onebeat.models.tasks import PeriodicTaskQuerySet
    from tests.importing.sources import report
    from tests.project.celery import app

    app.conf.beat_schedule = {f"t{n:02}": {"task": "a.b", "schedule": 60 + n % 5} for n in range(COUNT)}
    carry._PORTION = PORTION
    write, turn = PeriodicTaskQuerySet.bulk_create, 0

    def bulk_create(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal turn
        made, turn = write(self, *args, **kwargs), turn + 1
        if turn == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    PeriodicTaskQuerySet.bulk_create = bulk_create  # type: ignore[method-assign]
    found = report("settings", "--apply")
    return {"code": found["code"], "new": found["counts"].get("new", 0)}


def content() -> dict[str, int]:
    """How many tasks there are, how many of them on a schedule, how many schedules, how many tasks that hints name."""
    from django.db.models import Count

    from onebeat.models import Change, IntervalSchedule, PeriodicTask

    return {
        **PeriodicTask.objects.aggregate(tasks=Count("pk"), scheduled=Count("interval")),
        **Change.objects.filter(kind="task").aggregate(hinted=Count("ref", distinct=True)),
        "schedules": IntervalSchedule.objects.count(),
    }


def test_a_killed_one_leaves_nothing_half_done_and_the_next_do_the_rest_once(database: Scratch) -> None:
    killed, left, finished, then = run_python(database.env, story, 0)
    done = 3 * PORTION
    assert killed == {"ended": 0, "failed": 0, "new": 0}
    assert left == {"tasks": done, "scheduled": done, "hinted": done, "schedules": 5}
    assert finished == {"ended": 4, "failed": 0, "new": COUNT - done}
    assert then == {"tasks": COUNT, "scheduled": COUNT, "hinted": COUNT, "schedules": 5}
