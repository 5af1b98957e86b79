"""Many messages to RabbitMQ before the first is confirmed.

Celery waits for the confirm of each message before it sends the next. Here a flush is sent as a whole, on a channel of
its own, and its confirms are counted afterwards: the broker answers for many at once, and each keeps its own answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import amqp
from celery import Celery

from onebeat.dispatch.base import Accepted, Deferred, PublishResult, Unsent
from onebeat.dispatch.celery import amqp_messages
from onebeat.dispatch.celery.prepared import Kinds


class Confirmed:
    """A channel on an open connection whose publishes do not wait, and the producer that uses it."""

    def __init__(self, app: Celery, connection: Any) -> None:
        self.channel = connection.channel()
        self.producer: Any = app.amqp.Producer(self.channel, auto_declare=False)
        self.kinds = Kinds(app, self.producer)
        self._last = 0
        self._open: set[int] = set()
        self._refused: set[int] = set()
        # Numbered by the broker from here on, in the order of publishing.
        self.channel.confirm_select()
        self.channel.basic_publish = self._publish
        amqp_messages.guard(self.channel)
        self.channel.events["basic_ack"].add(self._ack)
        self.channel.events["basic_nack"].add(self._nack)

    @staticmethod
    def possible(connection: Any) -> bool:
        """Whether this connection's transport can do so, and the project wants confirms."""
        confirms = connection.transport_options.get("confirm_publish")
        return bool(confirms) and isinstance(connection.default_channel, amqp.Channel)

    @contextmanager
    def numbered(self) -> Iterator[list[int]]:
        """Collects the numbers of what is published in the block."""
        before = self._last
        numbers: list[int] = []
        try:
            yield numbers
        finally:
            numbers += range(before + 1, self._last + 1)

    def collect(self, timeout: float) -> None:
        """Wait until everything is answered. Raises when the broker closes the channel or is silent for `timeout`
        seconds."""
        while self._open:
            self.channel.connection.drain_events(timeout=timeout)

    def answer(self, numbers: list[int], lost: Unsent | None, full: Deferred) -> PublishResult:
        """What the broker answered to these, asked once, after `collect`: `full` if it refused one of them, `lost` if
        one was never answered.
        """
        refused = self._refused.intersection(numbers)
        self._refused -= refused
        if refused:
            return full
        return lost if lost is not None and self._open.intersection(numbers) else Accepted()

    def _publish(self, *args: object, **kwargs: object) -> object:
        kwargs.pop("confirm_timeout", None)
        # Counted first: a publish that fails half way may have reached the broker, and ends this channel anyhow.
        self._last += 1
        self._open.add(self._last)
        return self.channel._basic_publish(*args, **kwargs)

    def _answered(self, number: int, multiple: bool) -> set[int]:
        done = {one for one in self._open if one <= number} if multiple else {number}
        self._open -= done
        return done

    def _ack(self, number: int, multiple: bool) -> None:
        self._answered(number, multiple)

    def _nack(self, number: int, multiple: bool) -> None:
        self._refused |= self._answered(number, multiple)
