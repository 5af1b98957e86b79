"""What a worker pays: the same solo worker unrecorded, recorded and guarded, in turn, with the disk waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import machine
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import Failed, World, answer

WORK = "a solo worker"
UNRECORDED = "unrecorded"
#: What each is called: its settings, and whether the app is guarded.
KINDS: dict[str, tuple[dict[str, Any], bool]] = {
    UNRECORDED: ({"worker_signals": False}, False),
    "recorded": ({}, False),
    "guarded, durable": ({}, True),
    "guarded, async": ({"guard_commit": "async"}, True),
}


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Runs per second of tasks of no work."""
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(sizes.runs):
        for kind in KINDS:  # one after the other, so that what else the machine does meets them all
            rates[kind].append(_rate(world, sizes.worked, kind))
    for kind, found in rates.items():
        yield Figure(WORK, sizes.worked, kind, "runs/s", tuple(found))


def _rate(world: World, count: int, kind: str) -> float:
    settings, guarded = KINDS[kind]
    with world.place("onebeat", settings=settings) as place, place.connect() as link, machine.fsync(link):
        found = answer(place.module("solo", str(count), *(["guarded"] if guarded else [])))
    state = "sent" if kind == UNRECORDED else "succeeded"
    if found["states"] != {state: count}:
        raise Failed(f"{kind}: the ledger says {found['states']}")
    return float(found["rate"])
