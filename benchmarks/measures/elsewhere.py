"""The other databases: due at once, a tick with nothing to do, lateness. SQLite in a file."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.measures import due, lateness
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

_DAY = 86_400.0


def run(world: World, sizes: Sizes, database: str) -> Iterator[Figure]:
    """All of it on one database."""
    suffix, count = world.suffix(database=database), sizes.elsewhere
    rates = tuple(due.at_once(world, sizes, count, database=database)["rate"] for _ in range(sizes.runs))
    yield Figure(f"{due.WORK}{suffix}", count, "onebeat", "messages/s", rates)
    with world.place("onebeat", database=database) as place:
        answer(place.module("fill_orm", "daily", str(count), str(time.time() + _DAY)))
        found = [place.run("idle", ticks=40, rest=0.0, edit=False) for _ in range(sizes.runs)]
        yield Figure(f"idle tick{suffix}", count, "onebeat", "ms", tuple(one["ms"] for one in found))
    for rate in sizes.elsewhere_rate:
        yield from lateness.of(world, sizes, "onebeat", rate, database=database)
