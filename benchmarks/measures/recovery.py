"""Occurrences that a scheduler claimed before it was gone: how soon another has sent them all."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

_LIMIT = 600.0
WORK = "recovery of claimed occurrences"


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Seconds from the imports until all are sent, and messages per second. Their leases have ended by then."""
    seconds = tuple(_recovered(world, sizes.recovery) for _ in range(sizes.runs))
    yield Figure(WORK, sizes.recovery, "onebeat", "s", seconds)
    rates = tuple(sizes.recovery / one for one in seconds)
    yield Figure(f"{WORK}: rate", sizes.recovery, "onebeat", "messages/s", rates)


def _recovered(world: World, count: int) -> float:
    with world.place("onebeat") as place:
        with place.connect() as connection:
            fill.daily(connection, count, time.time() - 1)
        lost = answer(place.module("parts", "lose", str(count)))["claimed"]
        found = place.run("reach", count=count, limit=_LIMIT)
        if lost != count or not found["all"]:
            raise AssertionError(f"{lost} of {count} were claimed, {found['sent']} sent in {found['seconds']:.0f} s")
        return float(found["seconds"])
