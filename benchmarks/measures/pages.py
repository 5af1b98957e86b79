"""The admin's list of tasks and its page to add one, through Django's test client."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

_DAY = 86_400.0
_TIMES = 5


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Milliseconds and statements of each, by number of tasks."""
    asked = [("onebeat", count) for count in sizes.pages] + [("celery_beat", count) for count in sizes.rival_pages]
    for who, count in asked:
        with world.place(who, admin=True) as place:
            with place.connect() as connection:
                fill.daily(connection, count, time.time() + _DAY)
            found = [answer(place.module("pages", str(_TIMES))) for _ in range(sizes.runs)]
        for page in ("list", "add"):
            for key, more, unit in (("ms", "", "ms"), ("statements", ", statements", "")):
                yield Figure(f"admin: {page}{more}", count, who, unit, tuple(one[page][key] for one in found))
