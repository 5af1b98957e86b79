"""Known observers of what is published. Each wraps Celery's methods to add headers to a message and decides nothing.

Instead of calling its wrappers for each message, a room of `contrib` adds what they add, so that messages can still be
filled in. The room is imported when the observer has been.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol

from celery import Celery

from onebeat.dispatch.base import Message, PublishResult

#: The observer's module, and ours that serves it. That has `wrappers`, which names the modules of its observer's
#: wrappers (none, if they have to be called), `observer`, which makes
#: an `Observer` if it is set up, `in_scheduler` and `in_worker`.
_SERVED_BY = {"sentry_sdk.integrations.celery": "onebeat.contrib.sentry.tracing"}


class Observer(Protocol):
    """An observer, as it is set up while one call publishes some messages."""

    def mark(self, message: Message) -> Message:
        """The message with what it carries of its occurrence, whichever way it goes."""
        ...

    def begin(self) -> None:
        """A message goes through Celery's methods next, and so through the observer's own wrappers."""
        ...

    def headers(self, headers: dict[str, object]) -> dict[str, object]:
        """The headers of a message that is filled in, with what the wrappers would have added."""
        ...

    def published(self, messages: Sequence[Message], results: Sequence[PublishResult]) -> None:
        """What became of the messages of this call."""
        ...


def wrappers() -> list[str]:
    """The modules whose wrappers around Celery's methods need not be called."""
    return [name for module in _modules() for name in module.wrappers()]


def active(app: Celery) -> list[Observer]:
    """The observers that are set up in this process now."""
    return [found for module in _modules() if (found := module.observer(app)) is not None]


def in_scheduler(app: Celery) -> None:
    """A scheduler has its broker: what it skips is observed from here on."""
    for module in _modules():
        module.in_scheduler(app)


def in_worker() -> None:
    """A worker's process begins: what is observed of the outcomes of its tasks is told from here on."""
    for module in _modules():
        module.in_worker()


def _modules() -> list[ModuleType]:
    return [import_module(ours) for package, ours in _SERVED_BY.items() if package in sys.modules]
