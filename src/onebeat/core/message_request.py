"""What a call of `once` asks for, checked before anything is written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, TypedDict

from onebeat.core import keys
from onebeat.core.headers import problem
from onebeat.core.jsonable import encode
from onebeat.errors import InvalidMessage

_NAME = keys.LONGEST
#: What Celery calls the parts of a canvas, whose `apply_async` is not that of a task.
_CANVAS = frozenset({"celery.group", "celery.chain", "celery.chord", "celery.map", "celery.starmap", "celery.chunks"})
_MOST_SECONDS = 2**31 - 1


class CeleryTask(Protocol):
    """A Celery task object, as `@app.task` and `@shared_task` make them."""

    def apply_async(self, *args: object, **kwargs: object) -> object:
        """Celery's own."""


class MessageOptions(TypedDict, total=False):
    """The options of Celery's `apply_async` that a stored message can have, with Celery's meaning."""

    queue: str
    exchange: str
    routing_key: str
    #: 0 to 255.
    priority: int
    headers: dict[str, Any]
    #: Seconds that the message may wait for a worker, or the instant after which it must not run.
    expires: float | timedelta | datetime
    #: Seconds.
    time_limit: float
    #: Seconds.
    soft_time_limit: float
    ignore_result: bool
    serializer: str
    compression: str
    #: 1: lost when the broker restarts; 2: kept.
    delivery_mode: int
    shadow: str
    reply_to: str
    argsrepr: str
    kwargsrepr: str
    #: What to run when the task succeeded: a signature or a list of them.
    link: object
    #: What to run when the task failed.
    link_error: object
    #: What Sentry Crons is told of it: `checkin_margin` and `max_runtime` in minutes, `failure_issue_threshold`,
    #: `recovery_threshold`, `owner`.
    monitor: dict[str, Any]


#: What others are, for whoever passes them out of habit. In the options of a task they have no effect.
REFUSED = {
    "eta": "`at` says when",
    "countdown": "`at` says when: pass a timedelta",
    "task_id": "each occurrence has an id of its own",
    "root_id": "each occurrence has an id of its own",
    "parent_id": "each occurrence has an id of its own",
    "retry": "a scheduler sends the message, and tries until the broker has it",
    "retry_policy": "a scheduler sends the message, and tries until the broker has it",
    "producer": "a scheduler sends the message",
    "connection": "a scheduler sends the message",
    "publisher": "a scheduler sends the message",
    "chord": "a canvas has no place in a stored message: start it from the task",
    "group_id": "a canvas has no place in a stored message: start it from the task",
}


#: How a task is watched, which stands among its options and is none of its messages.
MONITOR = "monitor"
#: What is no option of a message whatever a row says.
NO_OPTIONS = frozenset({*REFUSED, MONITOR})


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """One task to run once. Texts are JSON."""

    key: str
    at: datetime | timedelta
    task: str
    args: str
    kwargs: str
    #: Columns of the task by name: queue, headers, expires, expire_seconds and so on.
    columns: dict[str, Any] = field(default_factory=dict)
    extra: str = "{}"
    tags: str = ""
    link: str = ""


def message_request(
    key: str,
    at: datetime | timedelta,
    task: str | CeleryTask,
    args: Iterable[object],
    kwargs: Mapping[str, object] | None,
    options: Mapping[str, object],
    *,
    tags: Iterable[str] = (),
    link: str = "",
) -> MessageRequest:
    """Check everything that can be checked without a database. Raises `InvalidMessage`
    naming the argument."""
    check_name("key", key)
    if not isinstance(at, datetime | timedelta):
        raise InvalidMessage(f"at: an aware datetime or a timedelta from now is needed, not {type(at).__name__}")
    if isinstance(at, datetime) and at.utcoffset() is None:
        raise InvalidMessage(f"at: {at.isoformat()} has no time zone; django.utils.timezone.make_aware gives it one")
    if isinstance(args, str | bytes | Mapping):
        raise InvalidMessage(f"args: a list or tuple of arguments is needed, not {type(args).__name__}")
    if not isinstance(kwargs, Mapping | None):
        raise InvalidMessage(f"kwargs: a dict of arguments is needed, not {type(kwargs).__name__}")
    words = [tags] if isinstance(tags, str) else list(tags)
    if isinstance(tags, str) or any("," in word or not word.strip() for word in words):
        raise InvalidMessage(f"tags: a list of words without commas is needed, not {words!r}")
    columns, extra = message_options(options)
    name = task_name(task)
    return MessageRequest(
        key,
        at,
        name,
        encode("args", list(args)),
        encode("kwargs", dict(kwargs or {})),
        columns,
        encode("options", extra),
        ",".join(sorted({word.strip() for word in words})),
        link,
    )


def check_name(argument: str, name: object) -> None:
    """Raise `InvalidMessage` naming the argument unless `name` can be a task's name."""
    if not isinstance(name, str) or not name.strip() or len(name) > _NAME:
        raise InvalidMessage(f"{argument}: a text of 1 to {_NAME} characters is needed, not {name!r}")


def task_name(task: object) -> str:
    """The registered name of a Celery task or of a name. Raises `InvalidMessage` for what is neither."""
    name = task if isinstance(task, str) else getattr(task, "name", None)
    if isinstance(task, Mapping) or name in _CANVAS:
        raise InvalidMessage(
            f"task: {task!r} is a signature, and only a task has a place in a stored message: pass the task, with its "
            "arguments as args and kwargs; a group, chain or chord is started from a task"
        )
    if not isinstance(name, str) or not hasattr(task, "apply_async" if not isinstance(task, str) else "strip"):
        raise InvalidMessage(f"task: a Celery task or its registered name is needed, not {task!r}")
    if not 0 < len(name) <= _NAME:
        raise InvalidMessage(f"task: a name of 1 to {_NAME} characters is needed, not {name!r}")
    return name


def message_options(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The options that the task has columns for, and the others, which go into one, `TaskOptions.extra`.

    Raises `InvalidMessage` for an option that a stored message cannot have, and for a value that it cannot take.
    """
    columns: dict[str, object] = {}
    extra: dict[str, object] = {}
    for name, value in options.items():
        if name not in _CHECKS:
            why = REFUSED.get(name, f"accepted are {', '.join(sorted(_CHECKS))}")
            raise InvalidMessage(f"{name}: this option of a message is not accepted: {why}")
        if value is None:
            continue
        if name == "expires":
            columns.update(_expires(value))
        elif name in _COLUMNS:
            columns[name] = _CHECKS[name](name, value)
        else:
            extra[name] = _CHECKS[name](name, value)
    return columns, extra


def _expires(value: object) -> dict[str, object]:
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise InvalidMessage(f"expires: {value.isoformat()} has no time zone")
        return {"expires": value}
    seconds = value.total_seconds() if isinstance(value, timedelta) else _seconds("expires", value)
    if not 0 < seconds <= _MOST_SECONDS:
        raise InvalidMessage(f"expires: 1 to {_MOST_SECONDS} seconds are possible, not {seconds:g}")
    return {"expire_seconds": math.ceil(seconds)}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _NAME:
        raise InvalidMessage(f"{name}: a text of 1 to {_NAME} characters is needed, not {value!r}")
    return value


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise InvalidMessage(f"{name}: a number of seconds above zero is needed, not {value!r}")
    return value


def _between(low: int, high: int) -> Callable[[str, object], int]:
    def check(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidMessage(f"{name}: a whole number from {low} to {high} is needed, not {value!r}")
        return value

    return check


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidMessage(f"{name}: True or False is needed, not {value!r}")
    return value


def _headers(name: str, value: object) -> str:
    if not isinstance(value, Mapping):
        raise InvalidMessage(f"{name}: a dict is needed, not {value!r}")
    text = encode(name, dict(value))
    if why := problem(json.loads(text)):
        raise InvalidMessage(why)
    return text


def _monitor(name: str, value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidMessage(f"{name}: a dict is needed, not {value!r}")
    for key, one in value.items():
        if key not in _MONITOR:
            raise InvalidMessage(f"{name}: {key!r} is not known; accepted are {', '.join(sorted(_MONITOR))}")
        _MONITOR[key](f"{name}: {key}", one)
    return dict(value)


def _any(name: str, value: object) -> object:
    encode(name, value)
    return value


_MONITOR: dict[str, Callable[[str, object], object]] = {
    **dict.fromkeys(("checkin_margin", "max_runtime"), _between(1, 40_320)),
    **dict.fromkeys(("failure_issue_threshold", "recovery_threshold"), _between(1, 720)),
    "owner": _text,
}
_COLUMNS = frozenset({"queue", "exchange", "routing_key", "priority", "headers"})
_CHECKS: dict[str, Callable[[str, object], object]] = {
    **dict.fromkeys(("queue", "exchange", "routing_key", "serializer", "compression"), _text),
    **dict.fromkeys(("shadow", "reply_to", "argsrepr", "kwargsrepr"), _text),
    **dict.fromkeys(("time_limit", "soft_time_limit"), _seconds),
    **dict.fromkeys(("link", "link_error"), _any),
    "priority": _between(0, 255),
    "delivery_mode": _between(1, 2),
    "headers": _headers,
    MONITOR: _monitor,
    "ignore_result": _flag,
    "expires": lambda name, value: value,
}
