"""Known observers of what is published. Each wraps Celery's methods to add headers to a message and decides nothing.

Instead of calling its wrappers for each message, a room of `contrib` adds what they add, so that messages can still be
filled in. The room is imported when the observer has been.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from onebeat.dispatch.base import Message

#: The observer's module, and ours that serves it. That has `wrappers`, which names the modules of its observer's
#: wrappers (none, if they have to be called), and `observer`, which makes an `Observer` if it is set up.
_SERVED_BY = {"sentry_sdk.integrations.celery": "onebeat.contrib.sentry.tracing"}


class Observer(Protocol):
    """An observer, as it is set up while one call publishes some messages."""

    def begin(self, message: Message) -> None:
        """`message` goes through Celery's methods next, and so through the observer's own wrappers."""
        ...

    def headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """The headers of a message that is filled in, with what the wrappers would have added."""
        ...


def wrappers() -> list[str]:
    """The modules whose wrappers around Celery's methods need not be called."""
    return [name for module in _modules() for name in module.wrappers()]


def active() -> list[Observer]:
    """The observers that are set up in this process now."""
    return [found for module in _modules() if (found := module.observer()) is not None]


def _modules() -> list[ModuleType]:
    return [import_module(ours) for package, ours in _SERVED_BY.items() if package in sys.modules]
