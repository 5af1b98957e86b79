"""One step of onebeat's engine alone: `python -m benchmarks.parts PART COUNT`.

`claim`: what is due is claimed and recorded, and nothing published. `publish`: ready messages go to the broker, and
nothing is recorded. `lose`: what is due is claimed by a scheduler that ends there. `sweep`: one pass over all tasks.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from datetime import timedelta
from typing import Any

from benchmarks.child import up

_USING = "default"
#: A turn later than this counts as missed.
_LATE = timedelta(minutes=10)


def taken(lease: float) -> list[Any]:
    """Everything that is due, claimed batch by batch."""
    from onebeat.conf import current
    from onebeat.store import claims

    terms = claims.Terms(0, timedelta(seconds=lease), current().batch_size, lambda now: now - _LATE)
    found: list[Any] = []
    while True:
        batch = claims.due(_USING, terms, None)
        found += [(one, batch.now) for one in batch.occurrences]
        if not batch.more:
            return found


def claim(app: Any, count: int) -> dict[str, float]:
    """Rows per second."""
    begin = time.perf_counter()
    found = len(taken(lease=600))
    seconds = time.perf_counter() - begin
    if found != count:
        raise SystemExit(f"{found} of {count} were claimed")
    return {"rate": found / seconds}


def publish(app: Any, count: int) -> dict[str, float]:
    """Messages per second."""
    from onebeat.conf import current
    from onebeat.dispatch.base import Accepted
    from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
    from onebeat.engine.messages import message

    settings = current()
    ready = [message(one, now) for one, now in taken(lease=600)]
    dispatcher = CeleryDispatcher(app, plain_below=settings.plain_below)
    outcomes = dispatcher.publish(ready[:10])  # connected and declared: what is left is the messages
    begin, size = time.perf_counter(), settings.flush_size
    for start in range(10, len(ready), size):
        outcomes += dispatcher.publish(ready[start : start + size])
    seconds = time.perf_counter() - begin
    accepted = sum(isinstance(one, Accepted) for one in outcomes)
    if accepted != count:
        raise SystemExit(f"{accepted} of {count} were published")
    return {"rate": (count - 10) / seconds}


def lose(app: Any, count: int) -> dict[str, float]:
    """How many are claimed, under leases that have ended."""
    return {"claimed": len(taken(lease=0))}


def sweep(app: Any, count: int) -> dict[str, float]:
    """Milliseconds for a thousand tasks, and seconds for a pass over all of them without a rest."""
    from onebeat.store.sweep import Sweep

    walk, took, more = Sweep(_USING, 1000), [], True
    while more:
        begin = time.perf_counter()
        more = walk._slice()
        took.append(time.perf_counter() - begin)
    return {"slice_ms": statistics.median(took) * 1000, "seconds": sum(took)}


def main() -> int:
    app = up()
    part = {"claim": claim, "publish": publish, "lose": lose, "sweep": sweep}[sys.argv[1]]
    print(json.dumps(part(app, int(sys.argv[2]))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
