"""The end of a run closes its check-in, in the worker.

It goes by what the worker knows of the outcome and not by the SDK's own receivers, to which a retry is an error and
a time-out, a lost process and a revoked message are nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from celery import signals
from sentry_sdk.integrations.celery import beat

from onebeat.celery import outcomes
from onebeat.contrib.sentry.outbox import Values, goodbye, outbox
from onebeat.core import clock
from onebeat.core.attempts import Outcome

SLUG, CONFIG, CHECK_IN = "sentry-monitor-slug", "sentry-monitor-config", "sentry-monitor-check-in-id"
START = "sentry-monitor-start-timestamp-s"
#: Further attempts follow: the check-in stays open.
_OPEN = {Outcome.RETRY, Outcome.REQUEUED}
_DONE = {Outcome.SUCCESS, Outcome.IGNORED}


def install() -> None:
    """From here on this process closes check-ins; may be called again, after the SDK was set up anew."""
    for name, signal in {
        "success": signals.task_success,
        "failure": signals.task_failure,
        "retry": signals.task_retry,
    }.items():
        signal.disconnect(getattr(beat, f"crons_task_{name}", None))
    outcomes.ended.connect(close, dispatch_uid="onebeat.sentry")
    for stopped in (signals.worker_process_shutdown, signals.worker_shutdown):
        stopped.connect(goodbye, dispatch_uid="onebeat.sentry", weak=False)


def close(request: Any, outcome: Outcome, **kwargs: object) -> None:
    """An attempt has ended."""
    nested = request.get("headers") or {}
    headers: Values = {name: request.get(name) or nested.get(name) for name in (SLUG, CONFIG, CHECK_IN, START)}
    if not headers[SLUG] or not headers[CHECK_IN] or outcome in _OPEN:
        return
    check_in: Values = {
        "monitor_slug": headers[SLUG],
        "check_in_id": headers[CHECK_IN],
        "status": "ok" if outcome in _DONE else "error",
    }
    if headers[CONFIG]:
        check_in["monitor_config"] = headers[CONFIG]
    with suppress(TypeError, ValueError):  # a header that somebody else has written
        check_in["duration"] = max(0.0, clock.host_now().timestamp() - float(headers[START]))
    trace = {name: found for name in ("sentry-trace", "baggage") if (found := request.get(name) or nested.get(name))}
    outbox().put(check_in, trace)
