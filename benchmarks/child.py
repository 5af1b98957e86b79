"""What is done in a process of its own: `python -m benchmarks.child CONTESTANT VERB '{"argument": ...}'`.

The last line it prints is its answer as JSON. Runs in each contestant's environment, so nothing of onebeat may be
imported here. What a contestant has sent is counted in the broker's queue, the same for all.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from amqp.exceptions import ChannelError


class Queue:
    """The queue that messages arrive in."""

    def __init__(self, app: Any, name: str) -> None:
        self._name = name
        self._connection = app.connection_for_write()
        self._connection.connect()
        self._channel = self._connection.channel()
        app.amqp.queues[name](self._channel).declare()

    def __len__(self) -> int:
        try:
            return int(self._channel.queue_declare(self._name, passive=True).message_count)
        except ChannelError:  # on Redis a queue with nothing in it is not there
            return 0


def memory() -> dict[str, float]:
    """Resident memory of this process, and its highest, in MiB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {"mib": int(status["VmRSS"].split()[0]) / 1024, "peak_mib": int(status["VmHWM"].split()[0]) / 1024}


@contextmanager
def statements() -> Iterator[list[float]]:
    """Collects the duration of each SQL statement of the block, in seconds."""
    from django.db import connection

    took: list[float] = []

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        begin = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            took.append(time.perf_counter() - begin)

    with connection.execute_wrapper(timed):
        yield took


def drain(scheduler: Any, queue: Queue, *, count: int, limit: float, at: float = 0.0) -> dict[str, Any]:
    """From `at` (seconds of the epoch) on, send `count` tasks that are due then; give up after `limit` seconds."""
    scheduler.start()
    while at and (left := at - time.time()) > 0:
        time.sleep(min(left, max(0.01, scheduler.tick())))
    begin, cpu = time.perf_counter(), time.process_time()
    began, sent = time.time(), 0
    while sent < count and time.perf_counter() - begin < limit:
        scheduler.tick()
        sent = len(queue)
    took = time.perf_counter() - begin
    return {
        "sent": sent,
        "seconds": took,
        "rate": sent / took,
        "cpu_us": (time.process_time() - cpu) / max(1, sent) * 1e6,
        "began": began,
        "ended": time.time(),
        "all": sent >= count,
        **memory(),
    }


def share(scheduler: Any, queue: Queue, *, count: int, limit: float, at: float) -> dict[str, Any]:
    """As one of several: tick from `at` until all have sent `count` together, or for `limit` seconds."""
    scheduler.start()
    while (left := at - time.time()) > 0:
        time.sleep(min(left, max(0.01, scheduler.tick())))
    while time.time() < at + limit and len(queue) < count:
        time.sleep(min(0.05, max(0.0, scheduler.tick())))
    scheduler.close()
    return {}


def reach(scheduler: Any, queue: Queue, *, count: int, limit: float) -> dict[str, Any]:
    """Tick and sleep as its own service does until there are `count` messages, or for `limit` seconds."""
    begin = time.perf_counter()
    scheduler.start()
    sent = 0
    while sent < count and time.perf_counter() - begin < limit:
        pause = scheduler.tick()
        sent = len(queue)
        time.sleep(max(0.0, pause) if sent < count else 0.0)
    scheduler.close()
    return {"sent": sent, "seconds": time.perf_counter() - begin, "all": sent >= count}


def idle(scheduler: Any, queue: Queue, *, ticks: int, rest: float, edit: bool) -> dict[str, Any]:
    """Ticks with nothing to do, how many statements each has, and what one changed row costs."""
    scheduler.start()
    for _ in range(5):
        scheduler.tick()
    gc.collect()
    took: list[float] = []
    count: list[int] = []
    for _ in range(ticks):
        with statements() as made:
            begin = time.perf_counter()
            scheduler.tick()
            took.append((time.perf_counter() - begin) * 1000)
        count.append(len(made))
    answer = {"ms": statistics.median(took), "mean_ms": statistics.fmean(took), "statements": statistics.median(count)}
    if rest:
        begin, cpu = time.perf_counter(), time.process_time()
        with statements() as made:
            while (left := begin + rest - time.perf_counter()) > 0:
                time.sleep(min(left, max(0.0, scheduler.tick())))
        answer["per_second"] = len(made) / rest
        answer["core"] = (time.process_time() - cpu) / rest * 100
        answer["asking"] = sum(made) / rest * 100
    if edit:
        change()
        begin = time.perf_counter()
        scheduler.tick()
        answer["change_ms"] = (time.perf_counter() - begin) * 1000
    return {**answer, **memory()}


def change() -> None:
    """One task's row is saved, as the admin does it."""
    from django.apps import apps

    model: Any = next(one for one in apps.get_models() if one.__name__ == "PeriodicTask")
    task = model.objects.order_by("pk").first()
    task.description = f"changed {time.time()}"
    task.save()


def first(scheduler: Any, queue: Queue, *, limit: float) -> dict[str, Any]:
    """From the end of the imports to the first message."""
    before = len(queue)
    begin = time.perf_counter()
    scheduler.start()
    sent = False
    while not sent and time.perf_counter() - begin < limit:
        scheduler.tick()
        sent = len(queue) > before
    return {"seconds": time.perf_counter() - begin, "all": sent, **memory()}


def serve(scheduler: Any, queue: Queue, *, until: float) -> dict[str, Any]:
    """Tick and sleep as its own service does, until `until` (seconds of the epoch)."""
    scheduler.start()
    cpu = time.process_time()
    while (left := until - time.time()) > 0:
        time.sleep(max(0.0, min(left, scheduler.tick())))
    answer = {"cpu_seconds": time.process_time() - cpu, **memory()}
    scheduler.close()
    return answer


def up() -> Any:
    """Django, and the Celery app as a process of a contestant has it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.project.settings")
    import django

    django.setup()
    from benchmarks.project.app import app

    app.set_default()
    app.finalize()
    return app


def main() -> int:
    contestant, verb, given = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    app = up()
    found = importlib.import_module(f"benchmarks.contestants.{contestant}")
    scheduler = found.Scheduler(app)
    queue = Queue(app, os.environ["BENCH_QUEUE"])
    if "fill" in given:
        scheduler.fill(**given.pop("fill"))
    verbs = {"drain": drain, "idle": idle, "first": first, "serve": serve, "share": share, "reach": reach}
    print(json.dumps(verbs[verb](scheduler, queue, **given)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
