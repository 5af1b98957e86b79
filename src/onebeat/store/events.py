"""The signals of `onebeat.signals`, and counts of the same, emitted by whoever writes the row that they are about."""

from __future__ import annotations

import uuid
from datetime import datetime

from onebeat import signals
from onebeat.core.reasons import Reason
from onebeat.models import Occurrence, PeriodicTask
from onebeat.store import counters


def sent(
    using: str, task: int, name: str, due_at: datetime, run: int, occurrence: int, celery_task_id: uuid.UUID
) -> None:
    """The broker has a message."""
    arguments = {"due_at": due_at, "run": run, "occurrence_id": occurrence, "celery_task_id": celery_task_id}
    signals.emit(signals.task_sent, Occurrence, using, task=name, task_id=task, **arguments)


def skipped(
    using: str,
    task: int,
    name: str,
    due_at: datetime,
    reason: Reason,
    detail: str,
    *,
    run: int = 0,
    last_due_at: datetime | None = None,
) -> None:
    """A nominal time, or a range of them, is not sent."""
    counters.add(using, reason)
    arguments = {"due_at": due_at, "last_due_at": last_due_at, "run": run, "reason": reason, "detail": detail}
    signals.emit(signals.occurrence_skipped, Occurrence, using, task=name, task_id=task, **arguments)


def quarantined(using: str, task: int, name: str, reason: str) -> None:
    """A task is quarantined."""
    signals.emit(signals.task_quarantined, PeriodicTask, using, task=name, task_id=task, reason=reason)
