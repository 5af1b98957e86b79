"""Schedulers, workers, people and faults on one simulated clock: one thing at a time, in an order that a seed decides.

The engine, its loop and its SQL are the real ones, on SQLite. Whoever stands still (a suspended process, a slow broker)
lets the others go on inside of its own step, so that they come in between any two statements of it.
"""

from __future__ import annotations

import heapq
import itertools
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from django.db import connection

from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.db import schema
from onebeat.engine.assembly import Assembly
from onebeat.engine.loop import Loop
from onebeat.engine.stop import Stop
from onebeat.engine.tick import Engine
from onebeat.store import attempts
from tests.proof.history import NOTHING, Arrival, Execution, Fault, Key, Trouble
from tests.proof.simulation.broker import Broker, Host, Link, Lost
from tests.proof.simulation.faulty import Died, Hit, failure

_KINDS = {
    "crash": Trouble.CRASH,
    "error": Trouble.DATABASE,
    "commit": Trouble.COMMIT,
    "suspend": Trouble.SUSPEND,
    "lost": Trouble.BROKER,
}


class World:
    """Everything that happens in one run. `now` is the database's clock."""

    def __init__(self, start: datetime, rng: Random, settings: Settings, *, whole: bool = True) -> None:
        """`whole`: with what a scheduler does beside its ticks."""
        self.whole = whole
        self.now = self.start = start
        self.rng = rng
        self.settings = settings
        self.broker = Broker(self._deliver)
        self.hosts: list[Scheduler] = []
        self.faults: list[Fault] = []
        self.executions: list[Execution] = []
        #: Whose code runs; None: a person's or a worker's.
        self.current: Scheduler | None = None
        self.database_away = False
        #: One line for each thing that happened.
        self.story: list[str] = []
        #: How many stand in the middle of a step of theirs while others go on.
        self.standing = 0
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, when: datetime, what: Callable[[], None]) -> None:
        """Something to do at an instant, or as soon as there is time for it."""
        heapq.heappush(self._events, (when, next(self._order), what))

    def run(self, until: datetime) -> None:
        """Let everything happen that is to happen before `until`."""
        while self._events and self._events[0][0] <= until:
            when, _, what = heapq.heappop(self._events)
            self.move(max(self.now, when))
            before, self.current = self.current, None
            try:
                what()
            finally:
                self.current = before
        self.move(until)

    def move(self, instant: datetime) -> None:
        self.now = max(self.now, instant)

    def boundary(self, kind: str) -> None:
        if self.current is not None:
            self.current.boundary(kind)

    def shared(self) -> bool:
        return self.standing > 0

    def tell(self, text: str) -> None:
        who = f"{self.current.name}: " if self.current else ""
        self.story.append(f"{(self.now - self.start).total_seconds():9.3f} {who}{text}")

    def fault(self, kind: Trouble, lasts: timedelta, scheduler: str = "", **more: Any) -> None:
        self.faults.append(Fault(kind, self.now, self.now + lasts, scheduler, **more))

    def _deliver(self, key: int, one: Arrival) -> None:
        """A worker takes each message after a while, guarded. One that is busy leaves time to send it again."""
        self.tell(f"message of {one.task} for {one.due_at}")
        takes = timedelta(seconds=self.rng.choice([0.1, 0.5, 2, 12]))
        attempt = attempts.Attempt(key, one.due_at, one.run, 0)

        def begin() -> None:
            token = secrets.randbits(62)
            if attempts.begin("default", attempt, token, "worker").verdict != attempts.StartVerdict.COPY:
                self.executions.append(Execution(one.task, one.due_at, self.now, self.now + takes, 0, one.run))
                self.at(self.now + takes, lambda: end(token))

        def end(token: int) -> None:
            over = clock.monotonic(), attempts.Outcome.SUCCESS, ""
            attempts.write("default", [attempts.Run(attempt, "worker", token=token, end=over)])

        self.at(self.now + timedelta(seconds=self.rng.choice([0, 0.05, 1, 9])), begin)


class Idle:
    """Stands in for what one run in several is enough for: housekeeping, and the look for another beat."""

    def step(self, *args: Any) -> bool:
        return False

    def close(self) -> None: ...


class Scheduler(Host):
    """A host with one scheduler process, which is started again when it dies."""

    def __init__(self, world: World, name: str, offset: timedelta) -> None:
        self.world = world
        self.name = name
        self.offset = offset
        self.hits: list[Hit] = []
        self.passed = 0
        self.stopped = False
        self._boot()
        world.hosts.append(self)

    def _boot(self) -> None:
        settings = self.world.settings
        link = Link(self.world.broker, self, settings.plain_below)
        engine = Engine(Assembly(link, settings, at=self._came_to))
        if not self.world.whole:
            engine._housekeeping = Idle()  # type: ignore[assignment]
            engine._other_beat = Idle()  # type: ignore[assignment]
        self.unrecorded: set[Key] = set()
        self.writing: list[Key] = []
        self.flush: list[Key] = []
        self.recording = False
        self.claimed = self.world.now
        self.loop = Loop(engine, Stop())

    def _came_to(self, step: str) -> None:
        # Nothing new is claimed before all is recorded.
        if step in ("claimed", "settled"):
            self.unrecorded.clear()
        self.recording = step == "published"
        self.claimed = self.world.now if step == "claimed" else self.claimed
        self.boundary("step")

    def now(self) -> datetime:
        return self.world.now

    def step(self) -> None:
        """One tick, and the next one is to come when it says."""
        if self.stopped:
            return
        before, self.world.current = self.world.current, self
        delay = timedelta(seconds=1)
        try:
            delay = timedelta(seconds=self.loop.tick())
        except Died:
            connection.close()  # what it had not committed is gone
            delay = self._away
            self._boot()
        finally:
            self.world.current = before
        self.world.at(self.world.now + delay, self.step)

    def leave(self) -> None:
        """Stop in good order."""
        self.stopped = True
        before, self.world.current = self.world.current, self
        try:
            self.loop.close()
        finally:
            self.world.current = before

    def waits(self, duration: timedelta) -> None:
        # What left in an earlier flush could have been recorded in time; this one is in the broker's hands.
        late = self.world.now + duration >= self.claimed + timedelta(seconds=self.world.settings.lease_seconds)
        copies = frozenset(self.flush if late else ())
        self.world.fault(Trouble.SUSPEND, duration, self.name, brief=True, copies=copies)
        self.stands(duration)

    def stands(self, duration: timedelta) -> None:
        """Stand still while the others go on. That was the last fault; whoever stands still in between adds to it."""
        place = len(self.world.faults) - 1
        self.world.standing += 1
        try:
            self.world.run(self.world.now + duration)
        finally:
            self.world.standing -= 1
            self.world.faults[place] = replace(self.world.faults[place], ended=self.world.now)

    def boundary(self, kind: str) -> None:
        self.passed += 1
        if self.world.database_away and (kind.endswith("statement") or kind == "before commit"):
            if self.unrecorded:
                self.world.fault(Trouble.DATABASE, NOTHING, self.name, brief=True, copies=frozenset(self.unrecorded))
            raise failure(kind)
        if (
            self.stopped
            or not self.hits
            or self.passed < self.hits[0].boundary
            or not self.hits[0].fits(kind, self.recording)
        ):
            return
        hit = self.hits.pop(0)
        self.world.tell(f"{hit.action} {kind} ({self.passed})")
        brief = hit.action in ("error", "commit", "lost")
        copies = frozenset({*self.unrecorded, *(self.writing if hit.action == "suspend" else ())})
        self.world.fault(_KINDS[hit.action], hit.lasts, self.name, brief=brief, copies=copies)
        match hit.action:
            case "crash":
                self._away = hit.lasts
                raise Died
            case "suspend":
                self.stands(hit.lasts)
            case "lost":
                raise Lost
            case _:
                raise failure(kind)


def govern(world: World) -> None:
    """Make all that ask for the time in this process ask `world`: hosts get their own clock, the database has one."""
    clock.use(
        clock.Source(
            now=lambda: world.now + (world.current.offset if world.current else NOTHING),
            database=lambda: world.now,
            monotonic=lambda: (world.now - world.start).total_seconds() + 1000.0,
            pause=lambda seconds: None,
        )
    )
    schema.lacking = lambda using: []  # it is, and a look at each table costs more than a run
