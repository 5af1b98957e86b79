"""Publishing through Celery: the task's own `apply_async` where the task is registered, else by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from datetime import timedelta
from typing import Any

from amqp.exceptions import MessageNacked
from celery import Celery, Task
from celery.exceptions import ImproperlyConfigured, QueueNotFound
from kombu import exceptions
from kombu.exceptions import EncodeError, OperationalError, SerializerNotInstalled

from onebeat.dispatch.base import Accepted, Deferred, Failed, Message, PublishResult, Refused, Unsent
from onebeat.dispatch.celery import amqp_messages, observers
from onebeat.dispatch.celery.amqp_messages import Unencodable
from onebeat.dispatch.celery.confirmed import Confirmed
from onebeat.dispatch.celery.prepared import Kinds, Way, arguments_error

logger = logging.getLogger("onebeat")

#: What a lost batch raises; kombu has it from 5.7 on.
_BATCH_LOST: type[Exception] = getattr(exceptions, "BatchPublishError", OperationalError)
#: What says for certain that a message can never be sent as it is.
_PERMANENT = (Unencodable, EncodeError, SerializerNotInstalled, QueueNotFound, ImproperlyConfigured)
#: What Celery's and kombu's own code raise for a message that they cannot make. KeyError: an unknown queue or exchange.
_OWN_FAULTS = (KeyError, ValueError, TypeError)

#: How long a connection may take, in seconds. Only where the project's own settings say nothing.
_CONNECT_SECONDS = 3.0
#: How long the broker may take to answer.
_ANSWER_SECONDS = 5.0
#: How long it may take to say goodbye: nothing depends on it.
_GOODBYE_SECONDS = 0.3

#: How many messages in a row must fail for the broker to count as unavailable although it answers.
_FAILURES = 3
#: From how many messages on a batch is quicker than one by one.
_FEW = 3
#: A larger message, in characters of its arguments, goes by itself: RabbitMQ closes the channel of one that it finds
#: too large.
_LARGE = 1_000_000

_UNAVAILABLE = Unsent("the broker does not answer", alone=False)
_FULL = Deferred("the broker did not take it: its queue may be full")
_STOPPING = Unsent("not tried: the scheduler stops", alone=False)
_CHANNEL_LOST = Unsent("the channel was lost on the way", alone=False)

#: RabbitMQ refuses a message that is to live longer than 2**32 - 1 milliseconds.
_LONGEST_LIFE = timedelta(milliseconds=2**32 - 1) - timedelta(hours=1)


class CeleryDispatcher:
    """One connection and one producer, kept open; opened again when the broker has been unavailable.

    Several messages go in one exchange with the broker: through the transport's own batch where it has one, or to
    RabbitMQ with their confirms counted afterwards. Overrides of `apply_async` and receivers of publish signals are
    called for each message as ever, inside that exchange; there `after_task_publish` is sent before the broker has
    answered. `plain_below`: where there are such overrides or receivers, fewer messages than this go one by one.
    """

    def __init__(self, app: Celery, *, plain_below: int = 50) -> None:
        self.app = app
        self.plain_below = plain_below
        self.stopping: Callable[[], bool] = lambda: False
        self._connection: Any = None
        self._producer: Any = None
        self._kinds: Kinds | None = None
        self._confirmed: Confirmed | None = None
        #: What the broker has taken once by itself over this connection, so that it may join a batch.
        self._proven: set[Hashable] = set()
        self._way: Any = None

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
            if self._connection.transport.driver_type == "amqp":
                amqp_messages.guard(self._connection.default_channel)
            self._producer = self.app.amqp.Producer(self._connection, auto_declare=False)
            _declare_once(self._producer)
            self._kinds = Kinds(self.app, self._producer)
            if Confirmed.possible(self._connection):
                self._confirmed = Confirmed(self.app, self._connection)
            observers.in_scheduler(self.app)
        except Exception as error:
            logger.debug("the broker does not answer: %r", error)
            self.close()
            return False
        return True

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        if not self.ready():
            return [_UNAVAILABLE] * len(messages)
        self._way = Way(self.app, self._producer)
        results = self._publish(messages, singly)
        for observer in self._way.observers:
            observer.published(messages, results)
        return results

    def _publish(self, messages: Sequence[Message], singly: bool) -> list[PublishResult]:
        # Where nobody can tell the difference a batch pays from a few messages on.
        seen = self._way.listened or self._usable(self._kinds) is None
        plain = seen or any(self._overridden(message.task) for message in messages)
        if singly or len(messages) < (self.plain_below if plain else min(self.plain_below, _FEW)):
            return self._each(messages)
        if self._confirmed is not None:
            return self._confirmed_batch(messages)
        if getattr(self._producer, "supports_batch_publish", False):
            return self._transport_batch(messages)
        return self._each(messages)

    def close(self) -> None:
        if self._connection is None:
            return
        try:
            self._limit_answers(_GOODBYE_SECONDS)
            self._connection.release()
        except Exception as error:
            logger.debug("closing the broker connection: %r", error)
        self._connection = self._producer = self._kinds = self._confirmed = None
        self._proven.clear()

    def _limit_answers(self, seconds: float) -> None:
        """Let a silent AMQP broker end in an error. py-amqp has no option for that: it reads on after a
        `read_timeout`, and its `confirm_timeout` does not cover declarations.
        """
        sock = getattr(self._connection._connection, "sock", None)
        if sock is not None:
            sock.settimeout(seconds)

    def _each(self, messages: Sequence[Message]) -> list[PublishResult]:
        results: list[PublishResult] = []
        failed = 0
        for message in messages:
            if self.stopping():
                results.append(_STOPPING)
                continue
            # After a failure a broker that answers gets the next: the message may be to blame. A few in a row are its
            # own.
            if failed == _FAILURES or not self.ready():
                results.append(_UNAVAILABLE)
                continue
            results.append(self._send(message, self._producer, self._usable(self._kinds)))
            failed = failed + 1 if isinstance(results[-1], Unsent) else 0
            if failed:
                self.close()
        return results

    def _transport_batch(self, messages: Sequence[Message]) -> list[PublishResult]:
        """All in one exchange with the broker. If that is lost, any of them may have arrived, and none counts as
        sent.
        """
        results: list[PublishResult] = []
        kinds = self._usable(self._kinds)
        try:
            # Every publish adds a few commands at most: one flush, at the end, whose answer stands for all.
            with self._producer.batch(max_size=8 * len(messages)):
                # An exception that left this block would discard what is buffered.
                for message in messages:
                    results.append(self._send(message, self._producer, kinds))
        except Exception as error:  # whatever it is, what was in the batch may have arrived
            lost = Unsent(repr(error), alone=False)
            self.close()
            found: list[PublishResult] = [lost if isinstance(result, Accepted) else result for result in results]
            return found + [lost] * (len(messages) - len(found))
        if any(isinstance(result, Unsent) for result in results):
            self.close()
        return results

    def _confirmed_batch(self, messages: Sequence[Message]) -> list[PublishResult]:
        """To RabbitMQ. What it has not yet taken once by itself goes first and singly: a message that it answers by
        closing the channel takes no other along.
        """
        results: dict[int, PublishResult] = {}
        batch: list[int] = []
        for number, message in enumerate(messages):
            like = _likeness(message)
            if like is not None and like in self._proven:
                batch.append(number)
                continue
            (results[number],) = self._each([message])
            if isinstance(results[number], Unsent):
                # The others wait for the next call: their connection is another by now.
                for left in [*batch, *range(number + 1, len(messages))]:
                    results[left] = _CHANNEL_LOST
                return [results[number] for number in range(len(messages))]
            if isinstance(results[number], Accepted) and like is not None and self._connection is not None:
                self._proven.add(like)
        if batch and (not self.ready() or self._confirmed is None):
            results.update(dict.fromkeys(batch, _UNAVAILABLE))
        elif batch:
            found = self._collect([messages[number] for number in batch], self._confirmed)  # type: ignore[arg-type]
            results.update(zip(batch, found, strict=True))
        return [results[number] for number in range(len(messages))]

    def _collect(self, messages: Sequence[Message], way: Confirmed) -> list[PublishResult]:
        """Write all of them, then read the broker's answers. If the channel is lost meanwhile, only what was answered
        counts as sent: any other may have arrived, and goes one by one when it is tried again.
        """
        results: list[PublishResult] = []
        numbers: list[list[int]] = []
        kinds, lost = self._usable(way.kinds), None
        for message in messages:
            with way.numbered() as mine:
                result = self._send(message, way.producer, kinds)
            if isinstance(result, Unsent) or self._connection is None:
                lost = _CHANNEL_LOST  # another message may have closed it: this one is not to blame
                break
            results.append(result)
            numbers.append(mine)
        try:
            if lost is None:
                way.collect(_ANSWER_SECONDS)
        except Exception as error:
            lost = Unsent(repr(error), alone=False)
        if lost is not None:
            self.close()
        found = [
            result if not isinstance(result, Accepted) else way.answer(mine, lost, _FULL)
            for result, mine in zip(results, numbers, strict=True)
        ]
        return found + [lost or _CHANNEL_LOST] * (len(messages) - len(found))

    def _send(self, message: Message, producer: object, kinds: Kinds | None = None) -> PublishResult:
        """Publish one message, filled in from one of its kind where `kinds` has one."""
        try:
            for observer in self._way.observers:
                message = observer.mark(message)
            kind = kinds.of(message) if kinds is not None else None
            if kind is not None:
                kind.publish(producer, message, self._way)
                return Accepted()
            if (wrong := self._arguments_error(message)) is not None:
                return Refused(wrong)
            for observer in self._way.observers:
                observer.begin()
            self._apply(message, producer)
        except Exception as error:
            return self._failure(message, error)
        return Accepted()

    def _failure(self, message: Message, error: Exception) -> PublishResult:
        """What an error says: of the message, of the broker, or of somebody's code on the way to it."""
        cause = error.__cause__
        if isinstance(error, OperationalError) and isinstance(cause, _OWN_FAULTS):
            error = cause  # kombu counts KeyError among Redis' connection errors
        reason = f"{type(error).__name__}: {error}"
        if isinstance(error, MessageNacked) or isinstance(error.__cause__, MessageNacked):
            return _FULL
        if isinstance(error, _PERMANENT):
            return Refused(reason)
        foreign = self._overridden(message.task)
        if isinstance(error, _OWN_FAULTS):
            # Of somebody's own code nobody knows what it means.
            return Failed(reason) if foreign else Refused(reason)
        if self._connection is None or isinstance(error, (_BATCH_LOST, OperationalError)):
            return Unsent(repr(error))
        library = type(error).__module__.partition(".")[0]
        if isinstance(error, self._connection.connection_errors):
            # An address that somebody's code could not reach is not the broker's.
            return Unsent(repr(error)) if not foreign or library in ("amqp", "redis", "kombu") else Failed(reason)
        if isinstance(error, self._connection.channel_errors):
            if library == "redis":  # a full or read-only Redis refuses commands, not messages
                return Unsent(repr(error))
            self.close()  # the broker closes the channel with its refusal
            return Refused(reason)
        return Failed(reason)

    def _apply(self, message: Message, producer: object) -> None:
        """Publish one message through Celery."""
        task, options = self.app.tasks.get(message.task), self._options(message, producer)
        if task is not None:
            task.apply_async(tuple(message.args), message.kwargs, **options)
        else:
            self.app.send_task(message.task, message.args, message.kwargs, **options)

    def _options(self, message: Message, producer: Any) -> dict[str, Any]:
        """The options of one message as Celery's `apply_async` takes them."""
        options = {"task_id": message.id, "producer": producer, "retry": False, **message.options}
        expires = options.get("expires")
        if expires is not None and expires - self.app.now() > _LONGEST_LIFE:
            # To the worker only: Celery makes of the option a time to live in the broker as well.
            options["headers"] = {**options.get("headers", {}), "expires": options.pop("expires").isoformat()}
        return options

    def _overridden(self, name: str) -> bool:
        """Whether somebody's own `apply_async` sends this task: what it raises says nothing about the broker."""
        task = self.app.tasks.get(name)
        return task is not None and type(task).apply_async is not Task.apply_async

    def _arguments_error(self, message: Message) -> str | None:
        """Why the task does not take these arguments, asked before somebody's own `apply_async` is; None if it does."""
        task = self.app.tasks.get(message.task)
        if task is None or not self._overridden(message.task):
            return None  # Celery asks by itself
        return arguments_error(task, message.args, message.kwargs)

    def _usable(self, kinds: Kinds | None) -> Kinds | None:
        """The kinds, if messages may be filled in from them as things stand now."""
        return kinds if kinds is not None and kinds.usable() else None

    def _transport_options(self) -> dict[str, object]:
        """Bounded waits, and RabbitMQ's publisher confirms: "accepted" means that the broker said so."""
        given = self.app.conf.broker_transport_options or {}
        own: dict[str, dict[str, object]] = {
            "redis": {"socket_connect_timeout": _CONNECT_SECONDS, "socket_timeout": _ANSWER_SECONDS},
            "amqp": {"confirm_publish": True},
        }
        # Asked of the transport: the setting may be a list of addresses, or an alias such as `sentinel`.
        return {**own.get(self.app.connection_for_write().transport.driver_type, {}), **given}


def _declare_once(producer: Any) -> None:
    """Let a producer look at each entity once. kombu copies one for every message to see that it is declared."""
    declare = producer.maybe_declare
    known: dict[int, object] = {}

    def maybe_declare(entity: object, *args: object, **options: object) -> object:
        if known.get(id(entity)) is entity:
            return False
        done = declare(entity, *args, **options)
        if getattr(entity, "can_cache_declaration", False):
            known[id(entity)] = entity
        return done

    producer.maybe_declare = maybe_declare


def _likeness(message: Message) -> Hashable | None:
    """What messages have in common that RabbitMQ judges alike; None for one that goes by itself, being large.

    It may close the channel for an exchange that is not there, a property that it does not know or a header (`CC`) that
    it reads itself, and not for what stands in the body or in other headers.
    """
    options = message.options
    headers: dict[str, object] = options.get("headers", {})
    if message.size > _LARGE:
        return None
    parts = [(name, repr(value)) for name, value in options.items() if name not in ("headers", "expires")]
    parts += [(name, repr(headers[name])) for name in ("CC", "BCC") if name in headers]
    return message.task, "expires" in options, *parts
