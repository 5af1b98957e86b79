"""What tasks cost that are not due: a tick, its statements, memory, one changed row, the way to the first message."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World

_DAY = 86_400.0
#: (work, key of the answer, unit)
_PARTS = (
    ("idle tick", "ms", "ms"),
    ("statements of an idle tick", "statements", ""),
    ("statements per second, idle", "per_second", "/s"),
    ("one row changed", "change_ms", "ms"),
    ("memory", "mib", "MiB"),
)


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """All of it, for each contestant and number of tasks."""
    asked = [("onebeat", count) for count in sizes.idle]
    asked += [("celery_beat", count) for count in sizes.rival_idle]
    asked += [("redbeat", min(10_000, sizes.rival_idle[-1]))]
    for who, count in asked:
        yield from _of(world, sizes, who, count)


def _of(world: World, sizes: Sizes, who: str, count: int) -> Iterator[Figure]:
    found: list[dict[str, Any]] = []
    firsts: list[float] = []
    with world.place(who) as place:
        given: dict[str, Any] = {"ticks": 40, "rest": sizes.rest if who == "onebeat" else 0.0, "edit": who != "redbeat"}
        if who == "redbeat":
            given |= {"fill": {"count": count, "due": False}, "ticks": 20}
        else:
            with place.connect() as connection:
                fill.daily(connection, count, time.time() + _DAY)
        for _ in range(sizes.runs):
            found.append(place.run("idle", **given))
            given.pop("fill", None)
        if who != "redbeat":
            for _ in range(sizes.runs):
                with place.connect() as connection:
                    fill.one_offs(connection, 1, time.time(), 1)
                firsts.append(place.run("first", limit=300)["seconds"])
    for work, key, unit in _PARTS:
        values = tuple(one[key] for one in found if key in one)
        if values:
            yield Figure(work, count, who, unit, values)
    if firsts:
        yield Figure("from the imports to the first message", count, who, "s", tuple(firsts))
