"""A broker that remembers every message it got, and fails as it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from onebeat.dispatch.base import Accepted, Deferred, Message, Outcome, Refused, Unsent
from onebeat.engine.messages import DUE_HEADER, NAME_HEADER, OCCURRENCE_HEADER, RUN_HEADER
from tests.proof.history import Arrival


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
        headers: dict[str, Any] = message.options["headers"]
        due_at = datetime.fromisoformat(headers[DUE_HEADER])
        one = Arrival(headers[NAME_HEADER], due_at, message.id, now, scheduler, headers[RUN_HEADER])
        self.arrivals.append(one)
        self.deliver(headers[OCCURRENCE_HEADER], one)


class Host:
    """What a scheduler's link to the broker needs of its process."""

    name: str
    #: Whether it has handed over messages since it recorded the last ones.
    in_flight: bool = False

    def boundary(self, kind: str) -> None:
        raise NotImplementedError

    def waits(self, duration: timedelta) -> None:
        raise NotImplementedError

    def now(self) -> datetime:
        raise NotImplementedError


@dataclass
class Link:
    """A dispatcher: one scheduler's connection. In a batch the answers come when all is written."""

    broker: Broker
    host: Host
    #: From how many messages on a call is a batch.
    batch: int

    def ready(self) -> bool:
        return not self.broker.away

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[Outcome]:
        outcomes: list[Outcome] = []
        self.host.in_flight = True
        for message in messages:
            if outcomes and isinstance(outcomes[-1], Unsent):
                outcomes.append(Unsent("given up", alone=False))
                continue
            try:
                outcomes.append(self._one(message))
            except Lost:
                if len(messages) >= self.batch:
                    # Nothing tells which of a batch arrived.
                    return [Unsent("lost in a batch", alone=False) for _ in messages]
                outcomes.append(Unsent("lost"))
        return outcomes

    def _one(self, message: Message) -> Outcome:
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
        self.host.boundary("after message")
        return Accepted()

    def close(self) -> None: ...
