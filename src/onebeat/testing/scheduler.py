"""One scheduler in this process, whose broker is a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import router

from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.dispatch.base import Accepted, Message, PublishResult, Unsent
from onebeat.engine.assembly import Assembly
from onebeat.engine.tick import Engine
from onebeat.models import TaskState

#: Where a scheduler can be stopped: after the claim, after the broker has the messages, after that is recorded.
POINTS = ("claimed", "published", "settled")


class Outbox:
    """A dispatcher that keeps what it is given, in order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        #: When each of them left, by the clock that onebeat goes by.
        self.sent_at: list[datetime] = []
        #: It does not answer at all.
        self.unavailable = False
        #: What becomes of a message; after an `Unsent` the rest of the same call is unsent too.
        self.answer: Callable[[Message], PublishResult] = lambda message: Accepted()
        self.stopping: Callable[[], bool] = lambda: False

    def ready(self) -> bool:
        return not self.unavailable

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        outcomes: list[PublishResult] = []
        for message in messages:
            lost = outcomes and isinstance(outcomes[-1], Unsent)
            outcomes.append(Unsent("given up", alone=False) if lost else self.answer(message))
            if isinstance(outcomes[-1], Accepted):
                self.messages.append(message)
                self.sent_at.append(clock.host_now())
        return outcomes

    def close(self) -> None: ...


class Died(Exception):
    """A scheduler's process ended here."""


class Scheduler:
    """The engine with its outbox. It does something only when it is told to."""

    def __init__(
        self, outbox: Outbox | None = None, settings: Settings | None = None, using: str | None = None
    ) -> None:
        """`using`: the alias of the database; None: where the router puts the tasks' states."""
        using = using or router.db_for_write(TaskState)
        self.outbox = outbox or Outbox()
        self.engine = Engine(Assembly(self.outbox, settings or Settings(), using))

    def tick(self) -> float:
        """One tick. Returns the seconds until the next one is worth making."""
        return self.engine.tick()

    def dies_at(self, point: str) -> None:
        """From now on a tick that comes to this point ends there with `Died`, and leaves everything as it is.

        Raises `ValueError` for a point that is none of `POINTS`.
        """
        if point not in POINTS:
            raise ValueError(f"point: {', '.join(POINTS)} are there, not {point!r}")

        def stop(name: str) -> None:
            if name == point:
                raise Died

        self.engine.parts.at = stop

    def die_at(self, point: str) -> None:
        """A tick that ends at this point. Raises `AssertionError` if it does not come there."""
        self.dies_at(point)
        try:
            self.tick()
        except Died:
            return
        raise AssertionError(f"nothing came to {point}")
