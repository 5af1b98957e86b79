"""Messages prepared once for each kind and filled in for each occurrence.

Building a task message through Celery costs several times what publishing it costs, and tasks that are due together
mostly differ in their id and arguments alone. So Celery builds the first message of a kind, by its own code and with
all routing, and hands it to a recorder instead of a producer; the others are filled in from what was recorded.

A kind is only prepared when nobody could tell the difference: no router but a table,
no patched or overridden method on the way but those of known observers (`observers`), no end of life. Anything else
takes Celery's own way, message by message. Receivers of the publish signals get theirs for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from celery import Celery, signals
from celery.app.routes import MapRoute
from celery.utils.saferepr import saferepr

from onebeat.dispatch.base import Message
from onebeat.dispatch.celery.observers import Observer, active
from onebeat.dispatch.celery.patches import original

#: The options whose values make a kind. A message with another option (`expires`) is not filled in.
_KIND = ("queue", "exchange", "routing_key", "priority")
#: Beyond this many kinds a dispatcher forgets them: each may be a queue of its own.
_MOST = 1000
#: Up to this length the plain representation of arguments is what Celery's bounded one would be.
_SHORT = 100
#: How much of longer ones is shown, as in Celery.
_LONGEST_SHOWN = 1024


_SIGNALS = (signals.before_task_publish, signals.after_task_publish)
#: What `before_task_publish` is shown beside a message's properties, and what it is not shown.
_SHOWN = ("exchange", "routing_key", "declare", "headers", "retry_policy")
_HIDDEN = ("serializer", "compression", "retry", "delivery_mode", "timeout", "confirm_timeout")


class Way:
    """How messages leave during one call: seen by whom, and by which `publish` of a producer."""

    def __init__(self, app: Celery, producer: Any) -> None:
        self.observers: list[Observer] = active(app)
        whole: Callable[..., Any] = type(producer).publish
        self.publish: Callable[..., object] = original(whole, "kombu.messaging") or whole
        #: Whether somebody listens to Celery's signals of publishing, which are sent for each message then.
        self.listened = any(signal.receivers for signal in _SIGNALS)


@dataclass(frozen=True, slots=True)
class Kind:
    """A recorded message: what Celery handed to the producer."""

    body: tuple[Any, ...]
    options: dict[str, Any]
    #: Raises `TypeError` for arguments that the task does not take.
    check: Callable[..., Any] | None

    def publish(self, producer: object, message: Message, way: Way) -> None:
        """Publish `message` as one of this kind, with what the observers on its way add."""
        args = type(self.body[0])(message.args)  # a tuple for a registered task, a list for a name
        if self.check is not None:
            self.check(*args, **message.kwargs)
        headers = {
            **self.options["headers"],
            "id": message.id,
            "root_id": message.id,
            "argsrepr": _shown(args),
            "kwargsrepr": _shown(message.kwargs),
        }
        own = message.options.get("headers", {})
        for observer in way.observers:
            own = observer.headers(own)
        headers.update(own)
        body = (args, message.kwargs, *self.body[2:])
        options = {**self.options, "headers": headers, "correlation_id": message.id}
        if way.listened:
            options = _announced(message.task, body, options)
        way.publish(producer, body, **options)
        if way.listened:
            where = {name: options[name] for name in ("exchange", "routing_key")}
            signals.after_task_publish.send(sender=message.task, body=body, headers=options["headers"], **where)


class Kinds:
    """The kinds that one connection has met."""

    def __init__(self, app: Celery, producer: object) -> None:
        self._app: Any = app
        self._producer = producer
        self._known: dict[Hashable, Kind | None] = {}

    def of(self, message: Message) -> Kind | None:
        """The kind of `message`; None: it has to go through Celery. Raises what Celery raises for the first of a
        kind.
        """
        options = message.options
        if any(name not in _KIND and name != "headers" for name in options):
            return None
        key = (message.task, *map(options.get, _KIND))
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._record(message)
        return self._known[key]

    def usable(self) -> bool:
        """Whether messages may be filled in at all, as things stand now."""
        app = self._app
        return (
            not signals.task_sent.receivers
            and not app.conf.task_send_sent_event
            and not app.conf.task_always_eager  # to record a message would be to run it
            and all(isinstance(router, MapRoute) for router in app.amqp.router.routes)
            and _untouched(app, "send_task", "celery.app.base")
        )

    def _record(self, message: Message) -> Kind | None:
        task = self._app.tasks.get(message.task)
        if task is not None and not (
            _untouched(task, "apply_async", "celery.app.task")
            and _untouched(task, "shadow_name", "celery.app.task")
            and getattr(task, "_dump_pydantic_arguments", None) is None
        ):
            return None
        recorder = _Recorder(self._producer)
        options = {name: value for name, value in message.options.items() if name in _KIND}
        options |= {"task_id": message.id, "producer": recorder, "retry": False}
        send: Any
        with _unheard():
            if task is not None:
                send = original(type(task).apply_async, "celery.app.task")
                send(task, tuple(message.args), message.kwargs, **options)
            else:
                send = original(type(self._app).send_task, "celery.app.base")
                send(self._app, message.task, message.args, message.kwargs, **options)
        body, found = recorder.body, recorder.options
        headers = found.get("headers") or {}
        if not isinstance(body, tuple) or headers.get("id") != message.id or found.get("correlation_id") != message.id:
            return None  # another protocol
        if headers.get("expires") is not None or "expiration" in found:
            return None
        # Bound to the channel once: an entity that is not is copied for every message.
        found["declare"] = [one if one.is_bound else one(recorder.channel) for one in found.get("declare") or ()]
        checked = task is not None and task.typing
        return Kind(body, found, getattr(task, "__header__", None) if checked else None)


def arguments_error(task: Any, args: list[Any], kwargs: dict[str, Any]) -> str | None:
    """Why a registered task does not take these arguments, asked as Celery asks; None if it does, or does not check."""
    check = getattr(task, "__header__", None) if task.typing else None
    try:
        if check is not None:
            check(*args, **kwargs)
    except TypeError as error:
        return f"TypeError: {error}"
    return None


def _announced(task: str, body: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Send `before_task_publish` as Celery does. Returns the options with what its receivers have changed in them."""
    # Receivers may write into what they are given, and it must not be found in the next message.
    given = {name: value.copy() if type(value) in (dict, list) else value for name, value in options.items()}
    headers = {name: value.copy() if type(value) is dict else value for name, value in given["headers"].items()}
    shown = {**{name: given.get(name) for name in _SHOWN}, "headers": headers}
    hidden = {name: given[name] for name in _HIDDEN if name in given}
    properties = {name: value for name, value in given.items() if name not in shown and name not in hidden}
    signals.before_task_publish.send(sender=task, body=body, properties=properties, **shown)
    return {**hidden, **shown, **properties}


@contextmanager
def _unheard() -> Iterator[None]:
    """Nobody hears of the message in this block, which is not sent."""
    kept = [(signal, signal.receivers) for signal in _SIGNALS]
    for signal in _SIGNALS:
        signal.receivers = []
    try:
        yield
    finally:
        for signal, receivers in kept:
            signal.receivers = receivers


class _Recorder:
    """Stands in for a producer and keeps what it is given."""

    def __init__(self, producer: Any) -> None:
        self.connection = producer.connection
        self.channel = producer.channel
        self.serializer = producer.serializer
        self.body: object = None
        self.options: dict[str, Any] = {}

    def publish(self, body: object, **options: object) -> None:
        self.body, self.options = body, options


def _untouched(owner: object, name: str, module: str) -> bool:
    """Whether a method is Celery's own, but for known observers."""
    return name not in getattr(owner, "__dict__", {}) and original(getattr(type(owner), name, None), module) is not None


def _shown(value: object) -> str:
    """Arguments as Celery shows them to people."""
    text = repr(value)
    return text if len(text) <= _SHORT else str(saferepr(value, _LONGEST_SHOWN))
