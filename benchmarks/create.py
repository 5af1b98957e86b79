"""Rows that an application makes: `python -m benchmarks.create CONTESTANT WAY CALLERS COUNT`.

`once_many`: COUNT follow-ups in one call. `once`: each caller asks for COUNT follow-ups of its own, at instants that
all share. `two_calls`: the same by `get_or_create` of the instant and `create` of the task. `get_or_create`: each
caller asks for the same COUNT instants, all at the same time. Callers are processes, forked when Django is up and set
off together.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.child import up

_BASE = datetime(2040, 1, 1, tzinfo=UTC)
#: How many instants the follow-ups of `once` share.
_SHARED = 100
_PATIENCE = 60.0

Call = Callable[[int, int], object]


def once_many(models: Any, count: int) -> dict[str, Any]:
    """Rows per second of one call."""
    import onebeat

    def items(name: str, many: int) -> list[Any]:
        return [
            {"key": f"{name} {n}", "at": _BASE + timedelta(seconds=n), "task": "benchmarks.nothing", "args": [n]}
            for n in range(many)
        ]

    onebeat.once_many(items("before", 10))
    wanted = items("follow-up", count)
    begin = time.perf_counter()
    onebeat.once_many(wanted)
    return {"rate": count / (time.perf_counter() - begin)}


def once(models: Any) -> Call:
    """A follow-up of the caller's own."""
    import onebeat

    def call(caller: int, number: int) -> object:
        at = _BASE + timedelta(seconds=number % _SHARED)
        return onebeat.once(f"follow-up {caller} {number}", at=at, task="benchmarks.nothing", args=[number])

    return call


def two_calls(models: Any) -> Call:
    """A follow-up of the caller's own, as people make it with django-celery-beat."""

    def call(caller: int, number: int) -> object:
        at = _BASE + timedelta(seconds=number % _SHARED)
        clocked, _ = models.ClockedSchedule.objects.get_or_create(clocked_time=at)
        name, args = f"follow-up {caller} {number}", json.dumps([number])
        return models.PeriodicTask.objects.create(
            name=name, task="benchmarks.nothing", args=args, clocked=clocked, one_off=True
        )

    return call


def get_or_create(models: Any) -> Call:
    """An instant that every caller wants."""
    clocked = models.ClockedSchedule.objects
    return lambda caller, number: clocked.get_or_create(clocked_time=_BASE + timedelta(seconds=number))


def race(call: Call, callers: int, count: int) -> dict[str, Any]:
    """`count` calls of each caller, all at once."""
    from django.db import connection

    connection.close()
    here = multiprocessing.get_context("fork")
    gate, answers = here.Barrier(callers), here.SimpleQueue()

    def caller(who: int) -> None:
        call(who, -1 - who)  # the connection, and what is made once; nobody else wants that instant
        errors: Counter[str] = Counter()
        took = []
        gate.wait(_PATIENCE)
        start = time.monotonic()
        for number in range(count):
            begin = time.perf_counter()
            try:
                call(who, number)
            except Exception as error:
                errors[type(error).__name__] += 1
            took.append((time.perf_counter() - begin) * 1000)
        answers.put((start, time.monotonic(), took, errors))

    processes = [here.Process(target=caller, args=(who,), daemon=True) for who in range(callers)]
    for process in processes:
        process.start()
    found = []
    while len(found) < callers:
        found.append(answers.get()) if not answers.empty() else time.sleep(0.01)
        if any(process.exitcode for process in processes):
            raise SystemExit("a caller ended without an answer")
    for process in processes:
        process.join()
    took = sorted(one for each in found for one in each[2])
    errors = sum((each[3] for each in found), Counter[str]())
    return {
        "rate": len(took) / (max(each[1] for each in found) - min(each[0] for each in found)),
        "p99": took[min(len(took) - 1, int(len(took) * 0.99))],
        "errors": errors.total(),
        "kinds": dict(errors),
    }


def duplicates(models: Any) -> int:
    """How many rows there are more than instants."""
    times = models.ClockedSchedule.objects.values_list("clocked_time", flat=True)
    return len(times) - len(set(times))


def main() -> int:
    contestant, way, callers, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    up()
    models = importlib.import_module(f"benchmarks.contestants.{contestant}")
    if way == "once_many":
        found = once_many(models, count)
    else:
        found = race(
            {"once": once, "two_calls": two_calls, "get_or_create": get_or_create}[way](models), callers, count
        )
    print(json.dumps({**found, "duplicates": duplicates(models)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
