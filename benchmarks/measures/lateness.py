"""How late one-offs arrive in the broker, at a steady rate, also while somebody adds rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import Place, World, answer

#: How long after the last is due they may still arrive, in seconds.
GRACE = 3.0


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Median, 99th percentile and highest lateness in ms, and the share that did not arrive."""
    for rate in sizes.lateness:
        yield from _both(world, sizes, "onebeat", rate)
    yield from _both(world, sizes, "celery_beat", sizes.lateness[0])


def _both(world: World, sizes: Sizes, who: str, rate: int) -> Iterator[Figure]:
    yield from of(world, sizes, who, rate)
    if rate in sizes.edited:
        yield from of(world, sizes, who, rate, edits=True)


def of(world: World, sizes: Sizes, who: str, rate: int, *, edits: bool = False, **where: Any) -> Iterator[Figure]:
    """That of one contestant. `where`: for `World.place`."""
    runs = []
    count = int(rate * sizes.lateness_seconds)
    for _ in range(sizes.runs):
        with world.place(who, **where) as place:
            start = time.time() + sizes.lead
            if place.database is world.database:
                with place.connect() as connection:
                    fill.one_offs(connection, count, start, rate)
            else:
                start += count / 500
                answer(place.module("fill_orm", "one_offs", str(count), str(start), str(rate)))
            until = start + sizes.lateness_seconds + GRACE
            writer = place.module("writer", place.contestant, str(start), str(until)) if edits else None
            runs.append(Served(place, until).late())
            if writer is not None:
                answer(writer)
    what = "lateness" + (", a row added every 200 ms" if edits else "") + world.suffix(**where)
    yield from figures(what, rate, who, count, runs)


class Served:
    """A scheduler at work and a receiver of what it sends, until an instant."""

    def __init__(self, place: Place, until: float) -> None:
        self._receiver = place.module("receiver", str(until))
        self._scheduler = place.begin("serve", until=until)

    def late(self) -> list[float]:
        """How late each message was, in ms, from the least to the most; when both have ended."""
        late = sorted(answer(self._receiver)["late_ms"])
        answer(self._scheduler)
        return late


def figures(what: str, rate: float, who: str, count: int, runs: list[list[float]]) -> Iterator[Figure]:
    """`runs`: how late each message of a run was; `count` were expected in each."""
    for name, at in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        values = [late[min(len(late) - 1, int(len(late) * at))] for late in runs if late]
        if values:
            yield Figure(f"{what}: {name}", rate, who, "ms", tuple(values))
    yield Figure(f"{what}: not arrived", rate, who, "%", tuple(100 * (1 - len(late) / count) for late in runs))
