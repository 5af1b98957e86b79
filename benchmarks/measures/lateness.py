"""How late one-offs arrive in the broker, at a steady rate, also while somebody adds rows."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

_LEAD = 8.0
#: How long after the last is due they may still arrive, in seconds.
_GRACE = 3.0


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Median, 99th percentile and highest lateness in ms, and the share that did not arrive."""
    for rate in sizes.lateness:
        for edits in (False, True):
            yield from _of(world, sizes, "onebeat", rate, edits)
    for edits in (False, True):
        yield from _of(world, sizes, "celery_beat", sizes.lateness[0], edits)


def _of(world: World, sizes: Sizes, who: str, rate: int, edits: bool) -> Iterator[Figure]:
    count = int(rate * sizes.lateness_seconds)
    runs = []
    for _ in range(sizes.runs):
        with world.place(who) as place:
            start = time.time() + _LEAD
            until = start + sizes.lateness_seconds + _GRACE
            with place.connect() as connection:
                fill.one_offs(connection, count, start, rate)
            receiver = place.module("receiver", str(until))
            scheduler = place.begin("serve", until=until)
            writer = place.module("writer", place.contestant, str(start), str(until)) if edits else None
            late = sorted(answer(receiver)["late_ms"])
            answer(scheduler)
            if writer is not None:
                answer(writer)
            runs.append(late)
    what = "lateness" + (", a row added every 200 ms" if edits else "")
    for name, at in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        values = [late[min(len(late) - 1, int(len(late) * at))] for late in runs if late]
        if values:
            yield Figure(f"{what}: {name}", rate, who, "ms", tuple(values))
    yield Figure(f"{what}: not arrived", rate, who, "%", tuple(100 * (1 - len(late) / count) for late in runs))
