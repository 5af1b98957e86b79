"""A broker that remembers every message it got, and fails as it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from onebeat.core.headers import DUE_HEADER, RUN_HEADER, TASK_HEADER
from onebeat.dispatch.base import Accepted, Deferred, Message, PublishResult, Refused, Unsent
from onebeat.engine.messages import NAME_HEADER
from tests.proof.history import Arrival, Key


class Lost(Exception):
    """The connection to the broker was lost in the middle of a message."""


@dataclass
class Broker:
    """What all schedulers send to."""

    #: Told of each message: its row's key, and the message.
    deliver: Callable[[int, Arrival], None]
    arrivals: list[Arrival] = field(default_factory=list)
    away: bool = False
    #: Answers, and takes nothing.
    full: bool = False
    #: How long a message takes.
    takes: timedelta = timedelta(0)
    #: Names of tasks whose messages it refuses, or does not take now.
    refuses: set[str] = field(default_factory=set)
    defers: set[str] = field(default_factory=set)

    def take(self, message: Message, scheduler: str, now: datetime) -> None:
        task, due_at, run = _key(message)
        one = Arrival(task, due_at, message.id, now, scheduler, run)
        self.arrivals.append(one)
        self.deliver(message.options["headers"][TASK_HEADER], one)


class Host:
    """What a scheduler's link to the broker needs of its process."""

    name: str
    #: Whose messages the broker has, and it has not recorded that.
    unrecorded: set[Key]
    #: Whose messages are about to be written, one after the other.
    writing: list[Key]
    #: All of the flush under way.
    flush: list[Key]

    def boundary(self, kind: str) -> None:
        raise NotImplementedError

    def waits(self, duration: timedelta) -> None:
        """Stand still, a broker being slow."""
        raise NotImplementedError

    def now(self) -> datetime:
        raise NotImplementedError


def _key(message: Message) -> Key:
    headers: dict[str, Any] = message.options["headers"]
    return headers[NAME_HEADER], datetime.fromisoformat(headers[DUE_HEADER]), headers[RUN_HEADER]


@dataclass
class Link:
    """A dispatcher: one scheduler's connection. In a batch the answers come when all is written."""

    broker: Broker
    host: Host
    #: From how many messages on a call is a batch.
    batch: int
    stopping: Callable[[], bool] = lambda: False

    def ready(self) -> bool:
        return not self.broker.away

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        outcomes: list[PublishResult] = []
        self.host.flush = [_key(one) for one in messages]
        for number, message in enumerate(messages):
            self.host.writing = [_key(one) for one in messages[number:]]
            if outcomes and isinstance(outcomes[-1], Unsent):
                outcomes.append(Unsent("given up", alone=False))
                continue
            try:
                outcomes.append(self._one(message))
            except Lost:
                if len(messages) >= self.batch:
                    # Nothing tells which of a batch arrived.
                    outcomes = [Unsent("lost in a batch", alone=False) for _ in messages]
                    break
                outcomes.append(Unsent("lost"))
        self.host.writing = []
        return outcomes

    def _one(self, message: Message) -> PublishResult:
        name = message.options["headers"][NAME_HEADER]
        if name in self.broker.refuses:
            return Refused("not to be had (simulated)")
        if name in self.broker.defers:
            return Deferred("its queue is full (simulated)")
        self.host.boundary("before message")
        if self.broker.takes:
            self.host.waits(self.broker.takes)
        if self.broker.away or self.broker.full:
            return Unsent("the broker takes nothing (simulated)", alone=False)
        self.broker.take(message, self.host.name, self.host.now())
        self.host.unrecorded.add(_key(message))
        self.host.boundary("after message")
        return Accepted()

    def close(self) -> None: ...
