"""What this machine can do at all, in the same run: publishing through Celery, kombu and raw; claiming by plain SQL."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import World, answer

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
            found = [answer(place.module("publish", way, str(sizes.limit))) for _ in range(sizes.runs)]
            yield Figure(f"limit: publishing{suffix}", 0, name, "messages/s", tuple(one["rate"] for one in found))
        if broker == "redis":
            found = [answer(place.module("claim_sql", "20000")) for _ in range(sizes.runs)]
            yield Figure("limit: claiming", 0, "plain SQL", "rows/s", tuple(one["rate"] for one in found))
