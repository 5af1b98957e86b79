"""Many tasks due at the same instant: how fast they are claimed, recorded and published; and by two schedulers."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import Place, World, answer

#: What a process may take to come up, in seconds, on a busy machine.
_LEAD = 8.0
WORK = "due at once"


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Messages per second of each contestant, for each number of tasks."""
    for count in sizes.due:
        got = [_onebeat(world, count) for _ in range(sizes.runs)]
        yield Figure(WORK, count, "onebeat", "messages/s", tuple(one["rate"] for one in got))
        yield Figure("processor time", count, "onebeat", "us/message", tuple(one["cpu_us"] for one in got))
    for count in sizes.rival_due:
        yield _rival(world, sizes, "celery_beat", count)
    for count in sizes.rival_due:
        yield _rival(world, sizes, "redbeat", count)


def brokers(world: World, sizes: Sizes) -> Iterator[Figure]:
    """The same through RabbitMQ."""
    count = sizes.due[0]
    rates = tuple(_onebeat(world, count, "rabbitmq")["rate"] for _ in range(sizes.runs))
    yield Figure(f"{WORK}, RabbitMQ", count, "onebeat", "messages/s", rates)


def shared(world: World, sizes: Sizes) -> Iterator[Figure]:
    """The rate with several schedulers on one database, from the first claim to the last record."""
    for schedulers in (1, 2):
        rates = []
        for _ in range(sizes.runs):
            with world.place("onebeat") as place:
                rates.append(_together(place, schedulers, sizes.shared))
        yield Figure("schedulers", schedulers, "onebeat", "messages/s", tuple(rates), f"{sizes.shared:,} due")


def _together(place: Place, schedulers: int, count: int) -> float:
    with place.connect() as connection:
        at = time.time() + _LEAD + count / 20_000
        fill.daily(connection, count, at)
        children = [place.begin("share", at=at, count=count, limit=120) for _ in range(schedulers)]
        for child in children:
            answer(child)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*), extract(epoch FROM max(sent_at) - min(decided_at)) FROM onebeat_occurrence"
                " WHERE state = 'sent'"
            )
            sent, seconds = cursor.fetchone()
    if sent != count:
        raise AssertionError(f"{sent} of {count} were sent")
    return sent / float(seconds)


def _onebeat(world: World, count: int, broker: str = "redis") -> dict[str, float]:
    with world.place("onebeat", broker=broker) as place:
        with place.connect() as connection:
            at = time.time() + _LEAD + count / 20_000
            fill.daily(connection, count, at)
        found = place.run("drain", count=count, limit=120, at=at)
        if not found["all"]:
            raise AssertionError(f"{found['sent']} of {count} were sent")
        return found


def _rival(world: World, sizes: Sizes, who: str, count: int) -> Figure:
    found = []
    for _ in range(sizes.runs):
        with world.place(who) as place:
            given = {"count": count, "limit": sizes.rival_seconds}
            if who == "celery_beat":
                with place.connect() as connection:
                    fill.daily(connection, count, time.time())
            else:
                given["fill"] = {"count": count, "due": True}
            found.append(place.run("drain", **given))
    whole = all(one["all"] for one in found)
    note = "" if whole else f"in the first {sizes.rival_seconds:g} s"
    return Figure(WORK, count, who, "messages/s", tuple(one["rate"] for one in found), note)
