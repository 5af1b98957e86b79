"""Claiming without publishing and publishing without recording: each to be held against what the machine can do."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

CLAIM, PUBLISH = "claiming alone", "publishing alone"


def run(world: World, sizes: Sizes, broker: str = "redis") -> Iterator[Figure]:
    """Rows and messages per second of one process."""
    if broker == "redis":
        yield Figure(CLAIM, sizes.alone, "onebeat", "rows/s", _rates(world, sizes, "claim", broker))
    rates = _rates(world, sizes, "publish", broker)
    yield Figure(PUBLISH + world.suffix(broker=broker), sizes.alone, "onebeat", "messages/s", rates)


def _rates(world: World, sizes: Sizes, part: str, broker: str) -> tuple[float, ...]:
    return tuple(_rate(world, sizes, part, broker) for _ in range(sizes.runs))


def _rate(world: World, sizes: Sizes, part: str, broker: str) -> float:
    with world.place("onebeat", broker=broker) as place:
        with place.connect() as connection:
            fill.daily(connection, sizes.alone, time.time() - 1)
        return float(answer(place.module("parts", part, str(sizes.alone)))["rate"])
