"""Due at once where somebody looks at each message, in turn with the same where nobody does."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.measures import due, limits
from benchmarks.project.observers import OBSERVERS
from benchmarks.sizes import Sizes
from benchmarks.world import World

ALONE = f"{due.WORK}, observed by nobody"


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Messages per second with each observer, of the same number without, and of the plain loop under the same."""
    count = sizes.routed
    names = ["", *OBSERVERS]
    rates: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(sizes.runs):
        for name in names:
            rates[name].append(due.at_once(world, sizes, count, observer=name)["rate"])
    for name in names:
        work = f"{due.WORK}, {name}" if name else ALONE
        yield Figure(work, count, "onebeat", "messages/s", tuple(rates[name]))
    for name in OBSERVERS:
        with world.place("onebeat", observer=name) as place:
            loop = limits.by(place, sizes, "send_task")
        yield Figure(f"limit: publishing, {name}", 0, "app.send_task in a loop", "messages/s", loop)
