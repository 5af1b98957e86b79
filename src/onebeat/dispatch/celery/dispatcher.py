"""Publishing through Celery: the task's own `apply_async` where the task is registered, else by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from amqp.exceptions import MessageNacked
from celery import Celery, Task
from kombu import exceptions
from kombu.exceptions import OperationalError

from onebeat.dispatch.base import Accepted, Deferred, Message, PublishResult, Refused, Unsent
from onebeat.dispatch.celery.confirmed import Confirmed
from onebeat.dispatch.celery.prepared import Kinds

logger = logging.getLogger("onebeat")

#: What a lost batch raises; kombu has it from 5.7 on.
_BATCH_LOST: type[Exception] = getattr(exceptions, "BatchPublishError", OperationalError)

#: How long a connection may take, in seconds. Only where the project's own settings say nothing.
_CONNECT_SECONDS = 3.0
#: How long the broker may take to answer.
_ANSWER_SECONDS = 5.0
#: How long it may take to say goodbye: nothing depends on it.
_GOODBYE_SECONDS = 0.3

#: How many messages in a row must fail for the broker to count as away although it answers.
_FAILURES = 3

#: From how many messages on a batch is quicker than one by one.
_FEW = 3

_AWAY = Unsent("the broker does not answer", alone=False)
_FULL = Deferred("the broker did not take it: its queue may be full")
_STOPPING = Unsent("not tried: the scheduler stops", alone=False)

#: RabbitMQ refuses a message that is to live longer than 2**32 - 1 milliseconds.
_LONGEST_LIFE = timedelta(milliseconds=2**32 - 1) - timedelta(hours=1)


class CeleryDispatcher:
    """One connection and one producer, kept open; opened again when the broker has been away.

    `plain_below`: with fewer messages than this in a call they go one by one if something listens to publish signals,
    so that it finds everything as ever; others go through the transport's own batch where it has one, or to RabbitMQ
    with their confirms counted afterwards. In a batch `after_task_publish` is sent before the broker has answered.

    Whoever may want it to end sets `stopping`, which is asked between two single messages: a slow broker may take
    longer for a whole call than anybody waits.
    """

    def __init__(self, app: Celery, *, plain_below: int = 50) -> None:
        self.app = app
        self.plain_below = plain_below
        self.stopping: Callable[[], bool] = lambda: False
        self._connection: Any = None
        self._producer: Any = None
        self._kinds: Kinds | None = None
        self._confirmed: Confirmed | None = None

    def ready(self) -> bool:
        if self._producer is not None:
            return True
        try:
            self._connection = self.app.connection_for_write(
                connect_timeout=_CONNECT_SECONDS, transport_options=self._transport_options()
            )
            # One round over the broker's addresses and no pause: who asks comes back soon.
            self._connection.ensure_connection(max_retries=max(0, len(self._connection.alt) - 1), interval_start=0)
            self._limit_answers(_ANSWER_SECONDS)
            self._producer = self.app.amqp.Producer(self._connection, auto_declare=False)
            self._kinds = Kinds(self.app, self._producer)
            if Confirmed.possible(self._connection):
                self._confirmed = Confirmed(self.app, self._connection)
        except Exception as error:
            logger.debug("the broker does not answer: %r", error)
            self.close()
            return False
        return True

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        if not self.ready():
            return [_AWAY] * len(messages)
        batched = [message for message in messages if not self._overridden(message.task)]
        # Where nothing listens nobody can tell the difference, and a batch pays from a few messages on.
        least = self.plain_below if _usable(self._kinds) is None else min(self.plain_below, _FEW)
        if singly or len(batched) < least:
            return self._each(messages)
        if self._confirmed is not None:
            found = self._flush(batched, self._confirmed)
        elif getattr(self._producer, "supports_batch_publish", False):
            found = self._batch(batched)
        else:
            return self._each(messages)
        outcomes: dict[int, PublishResult] = dict(zip(map(id, batched), found, strict=True))
        rest = [message for message in messages if id(message) not in outcomes]
        outcomes.update(zip(map(id, rest), self._each(rest), strict=True))
        return [outcomes[id(message)] for message in messages]

    def close(self) -> None:
        if self._connection is None:
            return
        try:
            self._limit_answers(_GOODBYE_SECONDS)
            self._connection.release()
        except Exception as error:
            logger.debug("closing the broker connection: %r", error)
        self._connection = self._producer = self._kinds = self._confirmed = None

    def _limit_answers(self, seconds: float) -> None:
        """Let a silent AMQP broker end in an error. py-amqp has no option for that: it reads on after a
        `read_timeout`, and its `confirm_timeout` does not cover declarations.
        """
        sock = getattr(self._connection._connection, "sock", None)
        if sock is not None:
            sock.settimeout(seconds)

    def _each(self, messages: Sequence[Message]) -> list[PublishResult]:
        outcomes: list[PublishResult] = []
        failed = 0
        for message in messages:
            if self.stopping():
                outcomes.append(_STOPPING)
                continue
            # After a failure a broker that answers gets the next: the message may be to blame. A few in a row are its
            # own.
            if failed == _FAILURES or not self.ready():
                outcomes.append(_AWAY)
                continue
            outcomes.append(self._send(message, self._producer, _usable(self._kinds)))
            failed = failed + 1 if isinstance(outcomes[-1], Unsent) else 0
            if failed:
                self.close()
        return outcomes

    def _batch(self, messages: Sequence[Message]) -> list[PublishResult]:
        """All in one exchange with the broker. If that is lost, any of them may have arrived, and none counts as
        sent.
        """
        outcomes: list[PublishResult] = []
        kinds = _usable(self._kinds)
        try:
            # Every publish adds a few commands at most: one flush, at the end, whose answer stands for all.
            with self._producer.batch(max_size=8 * len(messages)):
                # An exception that left this block would discard what is buffered.
                for message in messages:
                    outcomes.append(self._send(message, self._producer, kinds))
        except Exception as error:  # whatever it is, what was in the batch may have arrived
            lost = Unsent(repr(error), alone=False)
            self.close()
            return [one if isinstance(one, Refused) else lost for one in outcomes] or [lost] * len(messages)
        if any(isinstance(one, Unsent) for one in outcomes):
            self.close()
        return outcomes

    def _flush(self, messages: Sequence[Message], way: Confirmed) -> list[PublishResult]:
        """All of them to RabbitMQ, and then its answers. If the channel is lost, any of them may have arrived, and
        none counts as sent: whoever tries again sends one by one, so that a message that closes it shows itself.
        """
        outcomes: list[PublishResult] = []
        numbers: list[list[int]] = []
        kinds, lost = _usable(way.kinds), None
        for message in messages:
            with way.numbered() as mine:
                outcomes.append(self._send(message, way.producer, kinds))
            numbers.append(mine)
            if isinstance(outcomes[-1], Unsent) or self._connection is None:
                # Another message may have closed the channel: this one is not to blame.
                outcomes.pop()
                lost = Unsent("the channel was lost on the way", alone=False)
                break
        if lost is None:
            try:
                way.collect(_ANSWER_SECONDS)
            except Exception as error:
                lost = Unsent(repr(error), alone=False)
        if lost is not None:
            self.close()
            found: list[PublishResult] = [lost if isinstance(one, Accepted) else one for one in outcomes]
            return found + [lost] * (len(messages) - len(found))
        return [
            _FULL if isinstance(one, Accepted) and not way.took(mine) else one
            for one, mine in zip(outcomes, numbers, strict=True)
        ]

    def _send(self, message: Message, producer: Any, kinds: Kinds | None = None) -> PublishResult:
        """Publish one message, filled in from one of its kind where `kinds` has one."""
        try:
            kind = kinds.of(message) if kinds is not None else None
            if kind is not None:
                kind.publish(producer, message)
            else:
                self._apply(message, producer)
        except Exception as error:
            if isinstance(error, MessageNacked) or isinstance(error.__cause__, MessageNacked):
                return _FULL
            if self._away(error):
                return Unsent(repr(error))
            if isinstance(error, self._connection.channel_errors):
                self.close()  # the broker closes the channel with its refusal
            return Refused(f"{type(error).__name__}: {error}")
        return Accepted()

    def _apply(self, message: Message, producer: Any) -> None:
        """Publish one message through Celery."""
        task = self.app.tasks.get(message.task)
        options = {"task_id": message.id, "producer": producer, "retry": False, **message.options}
        expires = options.get("expires")
        if expires is not None and expires - self.app.now() > _LONGEST_LIFE:
            # To the worker only: Celery makes of the option a time to live in the broker as well.
            options["headers"] = {**options.get("headers", {}), "expires": options.pop("expires").isoformat()}
        if task is not None:
            task.apply_async(tuple(message.args), message.kwargs, **options)
        else:
            self.app.send_task(message.task, message.args, message.kwargs, **options)

    def _away(self, error: BaseException) -> bool:
        """Whether the broker is to blame and not the message."""
        if isinstance(error, KeyError | ValueError | TypeError):
            return False  # kombu counts KeyError among Redis' connection errors; an unknown queue is one
        if isinstance(error, (_BATCH_LOST, OperationalError)):
            return True
        if self._connection is None or isinstance(error, self._connection.connection_errors):
            return True
        # A full or read-only Redis refuses commands, not messages.
        return type(error).__module__.startswith("redis.") and isinstance(error, self._connection.channel_errors)

    def _overridden(self, name: str) -> bool:
        """Whether somebody's own `apply_async` sends this task: it goes the plain way, outside any batch."""
        task = self.app.tasks.get(name)
        return task is not None and type(task).apply_async is not Task.apply_async

    def _transport_options(self) -> dict[str, Any]:
        """Bounded waits, and RabbitMQ's publisher confirms: "accepted" means that the broker said so."""
        given = self.app.conf.broker_transport_options or {}
        own: dict[str, dict[str, Any]] = {
            "redis": {"socket_connect_timeout": _CONNECT_SECONDS, "socket_timeout": _ANSWER_SECONDS},
            "amqp": {"confirm_publish": True},
        }
        # Asked of the transport: the setting may be a list of addresses, or an alias such as `sentinel`.
        return {**own.get(self.app.connection_for_write().transport.driver_type, {}), **given}


def _usable(kinds: Kinds | None) -> Kinds | None:
    return kinds if kinds is not None and kinds.usable() else None
