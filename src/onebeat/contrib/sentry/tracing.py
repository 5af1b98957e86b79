"""Each message in a trace of its own, as Sentry's wrappers do it for messages of Celery's beat.

Its wrappers make the headers of a message anew in a tenth of a millisecond, and publish in a span that has no parent
and so goes nowhere. The headers differ in their ids alone: Sentry's own code makes them once for each flush, and they
are filled in.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import sentry_sdk
from celery import Celery
from celery.beat import ScheduleEntry
from sentry_sdk.integrations import celery
from sentry_sdk.integrations.celery import beat

from onebeat.contrib.sentry import closing, monitors, skips
from onebeat.contrib.sentry.outbox import Values, outbox
from onebeat.core import clock
from onebeat.dispatch.base import Accepted, Message, PublishResult, Refused

logger = logging.getLogger("onebeat")

_TRACE, _BAGGAGE, _ENQUEUED = "sentry-trace", "baggage", "sentry-task-enqueued-time"
_START, _PROPAGATE = "sentry-monitor-start-timestamp-s", "sentry-propagate-traces"
#: By this name of a scope Sentry's own wrappers know that no span of theirs is to be opened.
_BEAT = "celery-beat"
_IDS = re.compile(r"([0-9a-f]{32})-([0-9a-f]{16})")

#: Sentry's own maker of headers. It is no promise of the package: without it, its wrappers are hooks like any other.
_make: Callable[..., Values] | None = getattr(celery, "_update_celery_task_headers", None)


def wrappers() -> tuple[str, ...]:
    """The modules whose wrappers need not be called."""
    return ("sentry_sdk.integrations.celery", "sentry_sdk.integrations.celery.beat") if _make is not None else ()


def observer(app: Celery) -> Sentry | None:
    """Sentry as it is set up now; None: it is not, or without its integration for Celery."""
    integration = _integration()
    return None if integration is None or _make is None else Sentry(integration, _make, app)


def in_scheduler(app: Celery) -> None:
    """A scheduler's process begins."""
    skips.install(app, _integration)


def in_worker() -> None:
    """A worker's process begins."""
    closing.install()


def _once(scheduler: object, entry: ScheduleEntry, integration: object) -> None:
    """Sentry's own check-ins are for messages that have none from us: a hook's go through its wrappers too."""
    if closing.CHECK_IN not in ((entry.options or {}).get("headers") or {}):
        _sdk_check_in(scheduler, entry, integration)


_sdk_check_in = beat._apply_crons_data_to_schedule_entry
beat._apply_crons_data_to_schedule_entry = _once  # type: ignore[assignment]


def _integration() -> celery.CeleryIntegration | None:
    return sentry_sdk.get_client().get_integration(celery.CeleryIntegration)


class Sentry:
    """Headers of traces and check-ins, under the settings of one moment."""

    def __init__(self, integration: celery.CeleryIntegration, make: Callable[..., Values], app: Celery) -> None:
        self._app = app
        self._excluded = integration.exclude_beat_tasks
        #: The headers of the check-in of each message of this call that has one, by the message's id.
        self._opened: dict[str, Values] = {}
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

    def mark(self, message: Message) -> Message:
        """The message of a monitored task with what its worker closes the check-in by."""
        claimed = message.claimed
        if not self._monitored or claimed is None or claimed.run:
            return message
        task = claimed.task
        config = monitors.config(task, self._app, self._excluded)
        if config is None:
            return message
        # Derived from the occurrence: a copy of the message speaks of the same check-in.
        mine = {closing.SLUG: task.name, closing.CONFIG: config, closing.CHECK_IN: claimed.celery_task_id.hex}
        self._opened[message.id] = mine
        headers = {**message.options.get("headers", {}), **mine}
        if not headers.get(_PROPAGATE, self._propagate):
            headers["headers"] = {**headers.get("headers", {}), **mine}  # or a retry would lose it
        return replace(message, options={**message.options, "headers": headers})

    def published(self, messages: Sequence[Message], results: Sequence[PublishResult]) -> None:
        """Open the check-ins of what was sent; one that can never be sent has failed."""
        for message, result in zip(messages, results, strict=True):
            opened = self._opened.get(message.id)
            if opened is None or not isinstance(result, Accepted | Refused):
                continue
            status = "in_progress" if isinstance(result, Accepted) else "error"
            check_in = {
                "monitor_slug": opened[closing.SLUG],
                "check_in_id": opened[closing.CHECK_IN],
                "status": status,
                "monitor_config": opened[closing.CONFIG],
            }
            outbox().put(check_in, {})

    def begin(self) -> None:
        """Sentry's wrapper of `apply_async` finds a new trace."""
        new_trace()

    def headers(self, headers: Values) -> Values:
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
        made: Values = {_TRACE: f"{ids[:32]}-{ids[32:]}{self._trace[49:]}"}
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
