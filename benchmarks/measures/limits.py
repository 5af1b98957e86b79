"""What this machine can do at all, in the same run: publishing through Celery, kombu and raw; claiming by plain SQL."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import Place, World, answer

_WAYS = {
    "send_task": "app.send_task in a loop",
    "confirmed": "app.send_task in a loop, confirmed",
    "producer": "one kombu producer",
    "raw": "ready-made messages",
}
#: Ways that only one broker knows.
_ONLY = {"confirmed": "rabbitmq", "raw": "redis"}


def run(world: World, sizes: Sizes, broker: str = "redis") -> Iterator[Figure]:
    """Messages per second of one process, by each way."""
    suffix = "" if broker == "redis" else ", RabbitMQ"
    with world.place("onebeat", broker=broker) as place:
        for way, name in _WAYS.items():
            if _ONLY.get(way, broker) != broker:
                continue
            yield Figure(f"limit: publishing{suffix}", 0, name, "messages/s", by(place, sizes, way))
        if broker == "redis":
            found = [answer(place.module("claim_sql", str(sizes.alone))) for _ in range(sizes.runs)]
            yield Figure("limit: claiming", 0, "plain SQL", "rows/s", tuple(one["rate"] for one in found))


def by(place: Place, sizes: Sizes, way: str) -> tuple[float, ...]:
    """Messages per second by this way, of several runs."""
    return tuple(answer(place.module("publish", way, str(sizes.limit)))["rate"] for _ in range(sizes.runs))
