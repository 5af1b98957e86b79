"""Each message in a trace of its own, as Sentry's wrappers do it for messages of Celery's beat.

Its wrappers make the headers of a message anew in a tenth of a millisecond, and publish in a span that has no parent
and so goes nowhere. The headers differ in their ids alone: Sentry's own code makes them once for each flush, and they
are filled in.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable
from typing import Any

import sentry_sdk
from sentry_sdk.integrations import celery

from onebeat.core import clock
from onebeat.dispatch.base import Message

logger = logging.getLogger("onebeat")

_TRACE, _BAGGAGE, _ENQUEUED = "sentry-trace", "baggage", "sentry-task-enqueued-time"
_START, _PROPAGATE = "sentry-monitor-start-timestamp-s", "sentry-propagate-traces"
#: By this name of a scope Sentry's own wrappers know that no span of theirs is to be opened.
_BEAT = "celery-beat"
_IDS = re.compile(r"([0-9a-f]{32})-([0-9a-f]{16})")

#: Sentry's own maker of headers. It is no promise of the package: without it, its wrappers are hooks like any other.
_make: Callable[..., dict[str, Any]] | None = getattr(celery, "_update_celery_task_headers", None)


def wrappers() -> tuple[str, ...]:
    """The modules whose wrappers need not be called. Monitors of Sentry Crons are opened by the wrappers."""
    integration = _integration()
    if _make is None or (integration is not None and integration.monitor_beat_tasks):
        return ()
    return "sentry_sdk.integrations.celery", "sentry_sdk.integrations.celery.beat"


def observer() -> Tracing | None:
    """Sentry as it is set up now; None: it is not, or without its integration for Celery."""
    integration = _integration()
    return None if integration is None or _make is None else Tracing(integration, _make)


def _integration() -> celery.CeleryIntegration | None:
    return sentry_sdk.get_client().get_integration(celery.CeleryIntegration)


class Tracing:
    """Headers of traces, under the settings of one moment."""

    def __init__(self, integration: celery.CeleryIntegration, make: Callable[..., dict[str, Any]]) -> None:
        self._propagate = integration.propagate_traces
        self._monitored = integration.monitor_beat_tasks
        self._make = make
        new_trace()
        made = make({}, None, self._monitored)
        self._trace, self._baggage = made.get(_TRACE, ""), made.get(_BAGGAGE)
        found = _IDS.match(self._trace)
        #: The ids in the headers that Sentry made; None where these are of a kind that we do not know how to fill in.
        self._ids = (
            found.groups() if found and not made.keys() - {_TRACE, _BAGGAGE, _ENQUEUED, _START, "headers"} else None
        )
        if "sentry-sample_rand" in (self._baggage or ""):
            self._ids = None  # made from the trace's id

    def begin(self, message: Message) -> None:
        """Sentry's wrapper of `apply_async` finds a new trace."""
        new_trace()

    def headers(self, headers: dict[str, Any]) -> dict[str, Any]:
        """The headers with those of a new trace."""
        if not headers.get(_PROPAGATE, self._propagate):
            return {name: value for name, value in headers.items() if name != _PROPAGATE}
        if self._ids is None or _BAGGAGE in headers or "headers" in headers or _PROPAGATE in headers:
            new_trace()
            given = {name: value for name, value in headers.items() if name != _PROPAGATE}
            return self._make(
                {**given, "headers": dict(given["headers"])} if "headers" in given else given, None, self._monitored
            )
        ids = secrets.token_hex(24)
        now = clock.host_now().timestamp()
        made: dict[str, Any] = {_TRACE: f"{ids[:32]}-{ids[32:]}{self._trace[49:]}"}
        if self._baggage is not None:
            made[_BAGGAGE] = self._baggage.replace(self._ids[0], ids[:32])
        if self._monitored:
            made[_START] = f"{now:.9f}"
        made[_ENQUEUED] = now
        # Twice, as Sentry does it: a worker that hands the message on finds them below `headers` only.
        return {**headers, **made, "headers": {**headers, **made}}


def new_trace() -> None:
    """The next message belongs to no trace before it."""
    scope = sentry_sdk.get_isolation_scope()
    scope.set_new_propagation_context()
    scope._name = _BEAT
