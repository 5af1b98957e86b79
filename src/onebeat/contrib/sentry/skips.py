"""A time that is left out on purpose is no missed check-in.

Sentry's interface for check-ins has no word for "skipped", so such a time is sent as `ok`, without a duration.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from functools import partial

from celery import Celery
from sentry_sdk.integrations.celery import CeleryIntegration

from onebeat import signals
from onebeat.contrib.sentry import monitors
from onebeat.contrib.sentry.outbox import outbox
from onebeat.core.reasons import Reason
from onebeat.store import definitions, occurrences

_ON_PURPOSE = {Reason.PAUSED, Reason.OVERLAP}

Setup = Callable[[], CeleryIntegration | None]


def install(app: Celery, setup: Setup) -> None:
    """Listen in this process. `setup`: how Sentry is set up now."""
    receiver = partial(_skipped, app, setup)
    signals.occurrence_skipped.connect(receiver, dispatch_uid="onebeat.sentry", weak=False)


def _skipped(
    app: Celery, setup: Setup, *, using: str, task_id: int, due_at: datetime, run: int, reason: str, **kwargs: object
) -> None:
    integration = setup()
    if integration is None or not integration.monitor_beat_tasks or run or reason not in _ON_PURPOSE:
        return
    task = definitions.fetch(using, [task_id]).get(task_id)
    config = monitors.config(task, app, integration.exclude_beat_tasks) if task is not None else None
    if task is not None and config is not None:
        key = uuid.uuid5(occurrences.namespace(using), f"skipped/{task_id}/{due_at.isoformat()}")
        check_in = {"monitor_slug": task.name, "check_in_id": key.hex, "status": "ok", "monitor_config": config}
        outbox().put(check_in, {})
