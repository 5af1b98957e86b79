"""Several processes that start at once sync the same code: each task is made once, and nobody fails."""

from __future__ import annotations

import pytest

from onebeat.declare import registry, sources
from onebeat.declare.sync import sync
from onebeat.declare.values import Cron, Every
from tests.processes import processes, run_python
from tests.scratch import Scratch

PROCESSES, TASKS = 6, 20


def start(index: int) -> list[list[str]]:
    """What a process that starts does. Returns the tasks it made, and what was refused."""
    for number in range(TASKS):
        rule = Every(minutes=1 + number % 3) if number % 2 else Cron(f"{number} 9 * * *")
        registry.recurring(f"t{number}", rule, "a.b", tags=["x"])
    report = sync("default", [sources.of_apps()])
    made = [change.name for change in report.changes if change.what == "new"]
    return [made, [one.why for one in report.refused], list(report.standings.values())]


def found() -> list[int]:
    from onebeat.models import Action, Declared, PeriodicTask

    return [PeriodicTask.objects.count(), Declared.objects.count(), Action.objects.filter(verb="sync").count()]


@pytest.mark.concurrency
def test_many_that_start_at_once(database: Scratch) -> None:
    outcomes = processes(PROCESSES, database.env, start)
    assert [one.error for one in outcomes] == [""] * PROCESSES
    assert sorted(name for one in outcomes for name in one.value[0]) == sorted(f"t{number}" for number in range(TASKS))
    assert [one.value[1] for one in outcomes] == [[]] * PROCESSES
    assert sorted(one.value[2][0] for one in outcomes) == ["current"] * (PROCESSES - 1) + ["newer"]
    assert run_python(database.env, found) == [TASKS, TASKS, TASKS]
