"""What the engine asks of whatever takes its messages, and what it is told in return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from onebeat.store.occurrences import Claimed


@dataclass(frozen=True, slots=True)
class Message:
    """One task to run, ready to be published."""

    id: str
    task: str
    args: list[object]
    kwargs: dict[str, object]
    #: `apply_async` options: queue, exchange, routing_key, priority, expires, headers.
    options: dict[str, Any] = field(default_factory=dict)
    #: The key of the periodic task's row, for hooks that are handed the row.
    periodic_task: int = 0
    #: What it is sent for; None for a message of no task's row.
    claimed: Claimed | None = None
    #: About how many characters its arguments have.
    size: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The broker has the message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This message can't be sent as it is; others can."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Somebody's own code on the way to the broker raised an error: this message is tried again, others go on."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """The broker is away, or was lost on the way: the message may or may not have reached it."""

    reason: str
    #: It failed by itself, so that it may be to blame; False for those that were lost or given up together with others.
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Deferred:
    """The broker does not take this message now (its queue is full); it takes others."""

    reason: str


PublishResult = Accepted | Refused | Failed | Unsent | Deferred


class Dispatcher(Protocol):
    """Takes messages to a broker. Holds one connection; not for use by several threads."""

    #: Whether somebody wants the scheduler to end; asked between two single messages, since a slow broker may take
    #: longer for a whole call than anybody waits.
    stopping: Callable[[], bool]

    def ready(self) -> bool:
        """Whether the broker answers now; connects if need be, and does not wait long."""
        ...

    def publish(self, messages: Sequence[Message], *, singly: bool = False) -> list[PublishResult]:
        """Publish in order. One outcome for each message; never raises for a broker or a message that fails.

        `singly`: each by itself, so that one that breaks the connection shows itself.
        """
        ...

    def close(self) -> None:
        """Let the connection go. May be called at any time and more than once."""
        ...
