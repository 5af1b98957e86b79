"""The limits of publishing: `python -m benchmarks.publish WAY COUNT`, in messages per second of one process."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from typing import Any


def send_task(app: Any, count: int) -> float:
    """`app.send_task` in a loop, with one producer that stays open."""
    with app.producer_or_acquire() as producer:
        app.send_task("benchmarks.nothing", [0], {}, producer=producer, retry=False)
        begin = time.perf_counter()
        for _ in range(count):
            app.send_task("benchmarks.nothing", [0], {}, producer=producer, retry=False)
        return time.perf_counter() - begin


def confirmed(app: Any, count: int) -> float:
    """The same to RabbitMQ, whose confirm of each message is waited for, as nothing else tells that it has arrived."""
    app.conf.broker_transport_options = {"confirm_publish": True}
    return send_task(app, count)


def producer(app: Any, count: int) -> float:
    """A ready-made message through one kombu producer."""
    with app.producer_or_acquire() as open_one:
        made = app.amqp.create_task_message(str(uuid.uuid4()), "benchmarks.nothing", [0], {})
        queue = app.amqp.queues[os.environ["BENCH_QUEUE"]]
        options = {"exchange": queue.exchange.name, "routing_key": queue.routing_key, "serializer": "json"}
        open_one.publish(made.body, headers=made.headers, declare=[queue], **options, **made.properties)
        # Declared and found: what is left is the message itself.
        begin = time.perf_counter()
        for _ in range(count):
            open_one.publish(made.body, headers=made.headers, **options, **made.properties)
        return time.perf_counter() - begin


def raw(app: Any, count: int) -> float:
    """Ready-made bytes to Redis, fifty in a pipeline."""
    import redis

    text = json.dumps({"body": "W1swXSwge30sIG51bGxd", "headers": {"id": str(uuid.uuid4())}, "properties": {}}) * 3
    with redis.Redis.from_url(os.environ["BENCH_BROKER"]) as server:
        begin = time.perf_counter()
        for _ in range(count // 50):
            pipeline = server.pipeline(transaction=False)
            for _ in range(50):
                pipeline.lpush("bench-raw", text)
            pipeline.execute()
        return time.perf_counter() - begin


def main() -> int:
    import django

    django.setup()
    from benchmarks.project.app import app

    ways = {"send_task": send_task, "confirmed": confirmed, "producer": producer, "raw": raw}
    way, count = ways[sys.argv[1]], int(sys.argv[2])
    if way is raw:
        count *= 10
    print(json.dumps({"rate": count / way(app, count)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
