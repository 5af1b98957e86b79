"""The search for changes made past the ORM: what it costs beside a tick that has nothing to do."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

_DAY = 86_400.0
#: Name, `sweep_size` (None: the default).
_IDLE = {"ticks and sweep": None, "ticks alone": 0}

#: Of the answer. What the database does for it is no more than the time that its statements take.
_SHARES = {"core": "its process", "asking": "the database at most"}


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """A thousand tasks, a whole pass without a rest, and the share of one core that an idle scheduler takes."""
    for count in sizes.sweep:
        with world.place("onebeat") as place:
            with place.connect() as connection:
                fill.daily(connection, count, time.time() + _DAY)
            found = [answer(place.module("parts", "sweep", str(count))) for _ in range(sizes.runs)]
            yield Figure("sweep: 1,000 tasks", count, "onebeat", "ms", tuple(one["slice_ms"] for one in found))
            yield Figure("sweep: a whole pass", count, "onebeat", "s", tuple(one["seconds"] for one in found))
            for name, size in _IDLE.items():
                place.settings = {} if size is None else {"sweep_size": size}
                given = {"ticks": 1, "rest": sizes.rest, "edit": False}
                found = [place.run("idle", **given) for _ in range(sizes.runs)]
                for key, what in _SHARES.items():
                    values = tuple(one[key] for one in found)
                    yield Figure(f"idle scheduler, {name}: {what}", count, "onebeat", "% of a core", values)
