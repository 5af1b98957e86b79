"""A solo worker of Celery that runs tasks of no work: `python -m benchmarks.solo COUNT [guarded]`.

Prints the runs per second from the first body to the last, and what the ledger says of them when the worker has gone.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.child import up

_BEGIN = datetime(2026, 3, 10, 10, tzinfo=UTC)
NAME = "benchmarks.solo.nothing"


def messages(app: Any, count: int) -> None:
    """So many occurrences, and their messages as a scheduler sends them."""
    from onebeat.models import Occurrence

    made = [
        Occurrence(
            task_id=1,
            task_uid=1,
            task_name="t",
            due_at=_BEGIN + timedelta(seconds=number),
            state="sent",
            celery_task_id=uuid.uuid4(),
            decided_at=_BEGIN,
        )
        for number in range(count)
    ]
    Occurrence.objects.bulk_create(made, batch_size=1000)
    with app.producer_pool.acquire(block=True) as producer:
        for one in made:
            headers = {"onebeat_task": 1, "onebeat_due_at": one.due_at.isoformat(), "onebeat_run": 0}
            app.send_task(NAME, task_id=str(one.celery_task_id), headers=headers, producer=producer)


def work(app: Any, count: int) -> float:
    """Run them all; seconds from the first body to the last."""
    from celery.worker import state

    begun: list[float] = []

    @app.task(name=NAME)
    def nothing() -> None:
        begun.append(time.perf_counter())
        if len(begun) == count:
            state.should_stop = 0

    app.conf.worker_redirect_stdouts = False  # the answer is no line of a log
    app.Worker(pool="solo", loglevel="WARNING", without_mingle=True, without_gossip=True, quiet=True).start()
    return begun[-1] - begun[0]


def main() -> None:
    app, count = up(), int(sys.argv[1])
    if "guarded" in sys.argv:
        from onebeat.celery import guard

        guard(app)
    messages(app, count)
    try:
        seconds = work(app, count)
    except SystemExit:
        raise AssertionError("the worker left without an answer") from None
    from onebeat.models import Occurrence

    states = Counter(Occurrence.objects.values_list("state", flat=True))
    print(json.dumps({"rate": (count - 1) / seconds, "states": states}))


if __name__ == "__main__":
    main()
