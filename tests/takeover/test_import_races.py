"""`onebeat import` killed in the middle, and two of them at once, on each database."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.processes import processes
from tests.scratch import Scratch

COUNT, PORTION = 60, 8


def carried(index: int, dies_in: int) -> dict[str, Any]:
    """In another process: import COUNT tasks; with `dies_in`, SIGKILL in that portion before it commits."""
    from onebeat.importing import carry
    from onebeat.models import PeriodicTask
    from onebeat.models.querysets import PeriodicTaskQuerySet
    from tests.project.celery import app
    from tests.takeover.importing import report

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
    return {"code": found["code"], **found["counts"], "tasks": PeriodicTask.objects.count()}


def content(database: Scratch) -> tuple[int, int, int, int]:
    """How many tasks there are, of them on a schedule; how many schedules; how many hints."""
    with database.connect().cursor() as cursor:
        found = []
        for sql in (
            "SELECT COUNT(*), COUNT(interval_id) FROM django_celery_beat_periodictask",
            "SELECT COUNT(*) FROM django_celery_beat_intervalschedule",
            "SELECT COUNT(DISTINCT ref) FROM onebeat_change WHERE kind = 'task'",
        ):
            cursor.execute(sql)
            found += list(cursor.fetchone())
    return found[0], found[1], found[2], found[3]


def test_a_killed_import_leaves_nothing_half_done_and_the_next_does_the_rest(database: Scratch) -> None:
    (outcome,) = processes(1, database.env, carried, 4)
    assert "without an answer" in outcome.error
    assert content(database) == (3 * PORTION, 3 * PORTION, 5, 3 * PORTION)
    (outcome,) = processes(1, database.env, carried, 0)
    assert outcome.value == {"code": 0, "new": COUNT - 3 * PORTION, "same": 3 * PORTION, "tasks": COUNT}, outcome.error
    assert content(database) == (COUNT, COUNT, 5, COUNT)


def test_two_at_once_make_each_task_once(database: Scratch) -> None:
    done = [outcome.value for outcome in processes(4, database.env, carried, 0)]
    assert [each["code"] for each in done] == [0] * 4
    assert sum(each.get("new", 0) for each in done) == COUNT
    assert content(database) == (COUNT, COUNT, 5, COUNT)
