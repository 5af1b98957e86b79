"""Rows made by application code: `once_many`, `once` and plain `get_or_create`, the last two by many at once."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

#: Way, work, unit of the rate, what else is told: (key of the answer, what, unit).
_ONCE = ("once", "onebeat.once", "rows/s", (("p99", "p99", "ms"), ("errors", "errors", "")))
_TWO = ("two_calls", "get_or_create and create", "rows/s", (("errors", "errors", ""),))
_GET = (
    "get_or_create",
    "ClockedSchedule.objects.get_or_create",
    "calls/s",
    (("errors", "errors", ""), ("duplicates", "duplicate rows afterwards", "")),
)


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Rates, what went wrong, and what was left behind."""
    for count in sizes.once_many:
        found = [_made(world, "onebeat", "once_many", 1, count)["rate"] for _ in range(sizes.runs)]
        yield Figure("onebeat.once_many", count, "onebeat", "rows/s", tuple(found))
    for callers in sizes.callers:
        yield from _of(world, sizes, "onebeat", _ONCE, callers, sizes.calls // callers)
    yield from _of(world, sizes, "celery_beat", _TWO, 1, sizes.calls // 8)  # it needs that much longer for each
    for who in ("onebeat", "celery_beat"):
        for callers in sizes.callers:
            yield from _of(world, sizes, who, _GET, callers, sizes.instants)


def _of(
    world: World, sizes: Sizes, who: str, what: tuple[str, str, str, tuple[tuple[str, str, str], ...]], callers: int,
    count: int,
) -> Iterator[Figure]:  # fmt: skip
    way, work, unit, more = what
    found = [_made(world, who, way, callers, count) for _ in range(sizes.runs)]
    yield Figure(f"{work}, processes", callers, who, unit, tuple(one["rate"] for one in found))
    for key, name, unit in more:
        kinds = {kind: None for one in found for kind in one["kinds"]} if key == "errors" else {}
        values = tuple(float(one[key]) for one in found)
        note = f"of {count * callers:,}" + (f" ({', '.join(kinds)})" if kinds else "") if key == "errors" else ""
        yield Figure(f"{work}, processes: {name}", callers, who, unit, values, note)


def _made(world: World, who: str, way: str, callers: int, count: int) -> dict[str, float]:
    with world.place(who) as place:
        found: dict[str, float] = answer(place.module("create", who, way, str(callers), str(count)))
        return found
