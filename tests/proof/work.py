"""What the schedulers of a chaos cell are given to do; runs in processes with Django."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.proof import shifted
from tests.proof.guarded import NAME

RECURRING = {"latest": "latest", "each": "all", "edited": "latest"}
CRONS = {
    "wildcard": ("*", "*"),
    "fixed in the gap": ("30", "2"),
    "fixed after it": ("0", "3"),
    "fixed before": ("0", "2"),
}
ZONE = "Europe/Paris"


def _now() -> str:
    from onebeat.db import database_clock

    return database_clock.now("default").isoformat()


def make(recurring: dict[str, str], one_offs: int, over: float, crons: bool) -> dict[str, Any]:
    """The tasks: between which instants each was made, and what it is. `recurring`: the policies of those due every
    second, by name."""
    from onebeat.db import database_clock
    from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, TaskOptions

    shifted.apply()
    made: dict[str, Any] = {}

    def add(name: str, what: Any, options: dict[str, Any], **fields: Any) -> None:
        begin = _now()
        task = PeriodicTask.objects.create(name=name, task=NAME, **fields)
        if options:
            TaskOptions.objects.create(task=task, **options)
        made[name] = (begin, _now(), what)

    second, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    for name, missed in recurring.items():
        add(name, 1, {"missed": missed}, interval=second)
    for name, (minute, hour) in CRONS.items() if crons else ():
        cron, _ = CrontabSchedule.objects.get_or_create(minute=minute, hour=hour, timezone=ZONE)
        add(name, [minute, hour], {}, crontab=cron)
    begin = database_clock.now("default") + timedelta(seconds=1)
    for number in range(one_offs):
        instant = begin + timedelta(seconds=over * number / one_offs)
        clocked, _ = ClockedSchedule.objects.get_or_create(clocked_time=instant)
        add(f"once {number}", instant.isoformat(), {}, clocked=clocked, one_off=True)
    return made


def edit(rounds: int, pause: float) -> list[tuple[str, str, dict[str, Any]]]:
    """Change the task "edited" again and again: between which two instants, and what it is then."""
    shifted.apply()
    from onebeat.models import IntervalSchedule, PeriodicTask

    task = PeriodicTask.objects.filter(name="edited")
    every = {n: IntervalSchedule.objects.get_or_create(every=n, period="seconds")[0] for n in (1, 2)}
    steps: list[tuple[dict[str, Any], Callable[[], Any]]] = [
        ({"enabled": False}, lambda: task.update(enabled=False)),
        ({"enabled": True}, lambda: task.update(enabled=True)),
        ({"every": 2}, lambda: task.update(interval=every[2])),
        ({"every": 1}, lambda: task.update(interval=every[1])),
    ]
    done = []
    for number in range(rounds):
        threading.Event().wait(pause)
        said, change = steps[number % len(steps)]
        done.append((*_surely(change), said))
    return done


def end() -> tuple[str, str]:
    """Disable all that would go on for ever."""
    shifted.apply()
    from onebeat.models import PeriodicTask

    return _surely(lambda: PeriodicTask.objects.filter(clocked=None).update(enabled=False))


def _surely(change: Callable[[], Any]) -> tuple[str, str]:
    """Make a change, again if the database is away: what was tried and not answered may have been made."""
    from django.db import Error, connection

    begin = ""
    while True:
        try:
            begin = begin or _now()
            change()
            return begin, _now()
        except Error:
            connection.close()
            threading.Event().wait(0.2)
