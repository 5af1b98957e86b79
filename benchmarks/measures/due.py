"""Many tasks due at the same instant: how fast they are claimed, recorded and published; and by two schedulers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks import fill
from benchmarks.figures import Figure
from benchmarks.sizes import Sizes
from benchmarks.world import Place, World, answer

WORK = "due at once"


def run(world: World, sizes: Sizes) -> Iterator[Figure]:
    """Messages per second of each contestant, for each number of tasks."""
    for count in sizes.due:
        got = [at_once(world, sizes, count) for _ in range(sizes.runs)]
        yield Figure(WORK, count, "onebeat", "messages/s", tuple(one["rate"] for one in got))
        yield Figure("processor time", count, "onebeat", "us/message", tuple(one["cpu_us"] for one in got))
    for count in sizes.rival_due:
        yield _rival(world, sizes, "celery_beat", count)
    for count in sizes.rival_due:
        yield _rival(world, sizes, "redbeat", count)


def brokers(world: World, sizes: Sizes) -> Iterator[Figure]:
    """The same through RabbitMQ."""
    count = sizes.due[0]
    rates = tuple(at_once(world, sizes, count, broker="rabbitmq")["rate"] for _ in range(sizes.runs))
    yield Figure(f"{WORK}, RabbitMQ", count, "onebeat", "messages/s", rates)


def shared(world: World, sizes: Sizes) -> Iterator[Figure]:
    """The rate with several schedulers on one database, from the first claim to the last record."""
    for schedulers in sizes.schedulers:
        rates = []
        for _ in range(sizes.runs):
            with world.place("onebeat") as place:
                rates.append(_together(place, sizes, schedulers))
        yield Figure("schedulers", schedulers, "onebeat", "messages/s", tuple(rates), f"{sizes.shared:,} due")


def _together(place: Place, sizes: Sizes, schedulers: int) -> float:
    count = sizes.shared
    with place.connect() as connection:
        at = time.time() + sizes.lead + count / 20_000
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


def at_once(world: World, sizes: Sizes, count: int, **where: Any) -> dict[str, float]:
    """One scheduler sends `count` tasks that become due together. `where`: for `World.place`."""
    with world.place("onebeat", **where) as place:
        at = time.time() + sizes.lead + count / 20_000
        if place.database is world.database:
            with place.connect() as connection:
                fill.daily(connection, count, at)
                if place.exchange:
                    fill.routed(connection, f"bench-{place.exchange}")
        else:
            at += count / 1_000
            answer(place.module("fill_orm", "daily", str(count), str(at)))
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
