"""Old occurrences deleted while a thousand tasks are due every second: by the engine itself, and by the command."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.measures import lateness
from benchmarks.sizes import Sizes
from benchmarks.world import Failed, Place, World

_RATE = 1_000
_WAYS = {"the engine": False, "the command": True}
_NEVER = {"keep_days": 0, "keep_failed_days": 0}


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Rows deleted per second, and how late messages were meanwhile."""
    for name, command in _WAYS.items():
        if command and not sizes.pruning_command:
            continue
        rates, runs = [], []
        for _ in range(sizes.runs):
            with world.place("onebeat") as place:
                rate, late = _pruned(place, sizes, command)
            rates.append(rate)
            runs.append(late)
        work = f"pruning by {name}, {_RATE:,} due per second"
        yield Figure(work, sizes.pruning, "onebeat", "rows/s", tuple(rates))
        yield from lateness.figures(work, sizes.pruning, "onebeat", int(_RATE * sizes.pruning_seconds), runs)


def _pruned(place: Place, sizes: Sizes, command: bool) -> tuple[float, list[float]]:
    with place.connect() as connection:
        fill.old(connection, sizes.pruning)
        start = time.time() + sizes.lead
        end = start + sizes.pruning_seconds
        fill.one_offs(connection, int(_RATE * sizes.pruning_seconds), start, _RATE)
        if command:  # nobody else prunes
            place.settings = _NEVER
        served = lateness.Served(place, end + lateness.GRACE)
        place.settings = {}
        time.sleep(max(0.0, start - time.time()))
        before, begin = _left(connection), time.monotonic()
        if command:
            _prune(place, end)
        else:  # it began as soon as it was up, and goes on at its own pace
            time.sleep(max(0.0, end - time.time()))
        seconds = time.monotonic() - begin
        gone = before - _left(connection)
    return gone / seconds, served.late()


def _prune(place: Place, end: float) -> None:
    """A whole pass, or as much of it as there is time for."""
    child = place.start("-m", "django", "onebeat", "prune")
    try:
        out, _ = child.communicate(timeout=max(0.0, end - time.time()))
    except subprocess.TimeoutExpired:
        child.terminate()
        child.communicate()
        return
    if child.returncode:
        raise Failed(out[-1500:])


def _left(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM onebeat_occurrence WHERE decided_at < (now() AT TIME ZONE 'UTC') - interval '7 days'"
        )
        return int(cursor.fetchone()[0])
