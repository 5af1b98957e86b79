"""Due at once through other exchanges than Celery's default, and where the transport has no batch."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.measures import due, limits
from benchmarks.sizes import Sizes
from benchmarks.world import World

SINGLY = "without batches"
#: A Redis client that retries by itself has no batch in kombu: what it sends again may have arrived.
_TRANSPORT = {"retry_on_timeout": True}


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Messages per second."""
    count = sizes.routed
    for exchange in ("direct", "topic"):
        found = [due.at_once(world, sizes, count, exchange=exchange)["rate"] for _ in range(sizes.runs)]
        yield Figure(f"{due.WORK}, {exchange} exchange", count, "onebeat", "messages/s", tuple(found))
    with world.place("onebeat", transport=_TRANSPORT) as place:
        rates = limits.by(place, sizes, "send_task")
        yield Figure(f"limit: publishing, {SINGLY}", 0, "app.send_task in a loop", "messages/s", rates)
    found = [due.at_once(world, sizes, count, transport=_TRANSPORT)["rate"] for _ in range(sizes.runs)]
    yield Figure(f"{due.WORK}, {SINGLY}", count, "onebeat", "messages/s", tuple(found))
