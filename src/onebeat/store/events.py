"""The signals of `onebeat.signals`, emitted by whoever writes the row that they are about, and how many messages this
process has sent and how many times it has skipped, by reason: committed ones only, a range of times as one.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import partial

from django.db import transaction

from onebeat import signals
from onebeat.core.reasons import Reason
from onebeat.models import Occurrence, PeriodicTask

#: The word for those that were sent; the others are reasons.
SENT = "sent"

_tallies: dict[str, Counter[str]] = {}


def count(using: str, what: str, number: int = 1) -> None:
    """Count when the present transaction has committed, or at once where there is none."""
    transaction.on_commit(partial(_count, using, what, number), using=using)


def _count(using: str, what: str, number: int) -> None:
    _tallies.setdefault(using, Counter())[what] += number


def counted_since(using: str, before: Mapping[str, int]) -> dict[str, int]:
    """What has been counted besides `before`; {} for that: since the process started."""
    now = _tallies.get(using, Counter())
    return {what: number - before.get(what, 0) for what, number in now.items() if number != before.get(what, 0)}


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
    count(using, reason)
    arguments = {"due_at": due_at, "last_due_at": last_due_at, "run": run, "reason": reason, "detail": detail}
    signals.emit(signals.occurrence_skipped, Occurrence, using, task=name, task_id=task, **arguments)


def quarantined(using: str, task: int, name: str, reason: str) -> None:
    """A task is quarantined."""
    signals.emit(signals.task_quarantined, PeriodicTask, using, task=name, task_id=task, reason=reason)
