"""The signals of `onebeat.signals`, and counts of the same, told by whoever writes the row that they are about."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from onebeat import signals
from onebeat.models import Occurrence, PeriodicTask
from onebeat.store import tally

if TYPE_CHECKING:
    from onebeat.store.ledger import Claimed


def sent(using: str, those: Collection[Claimed]) -> None:
    """The broker has these messages."""
    tally.add(using, tally.SENT, len(those))
    if not signals.task_sent.has_listeners(Occurrence):
        return
    for one in those:
        told = {"due_at": one.due_at, "run": one.run, "occurrence_id": one.id, "celery_task_id": one.celery_task_id}
        signals.tell(signals.task_sent, Occurrence, using, task=one.task.name, task_id=one.task.id, **told)


def skipped(
    using: str,
    task: int,
    name: str,
    due_at: datetime,
    reason: str,
    detail: str,
    *,
    run: int = 0,
    through: datetime | None = None,
) -> None:
    """A nominal time, or a range of them, is not sent."""
    tally.add(using, reason)
    told = {"due_at": due_at, "through": through, "run": run, "reason": reason, "detail": detail}
    signals.tell(signals.occurrence_skipped, Occurrence, using, task=name, task_id=task, **told)


def quarantined(using: str, task: int, name: str, reason: str) -> None:
    """A task is set aside."""
    signals.tell(signals.task_quarantined, PeriodicTask, using, task=name, task_id=task, reason=reason)
