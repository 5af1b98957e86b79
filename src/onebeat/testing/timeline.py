"""The story of a test: what the clock did, and what became of each nominal time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from onebeat.models import Occurrence, TaskState

_MOST = 200


def lines(using: str, events: Iterable[tuple[datetime, str]]) -> Iterator[str]:
    """A line for each event and each occurrence, oldest first, and what is to come. Times are UTC."""
    story = [(at, 1, text) for at, text in events]
    rows = Occurrence.objects.using(using).order_by("-pk")[:_MOST]
    for run in rows:
        due = f"{run.due_at:%Y-%m-%d %H:%M:%S}"
        number = f", run {run.run}" if run.run else ""
        why = f" ({': '.join(filter(None, (run.reason, run.detail)))})" if run.reason else ""
        at = run.sent_at or run.decided_at
        assert isinstance(at, datetime)
        story.append((at, 0, f"{run.task_name}: due {due}{number}: {run.state}{why}"))
    for at, _, text in sorted(story):
        yield f"{at:%Y-%m-%d %H:%M:%S}  {text}"
    if len(rows) == _MOST:
        yield f"(the newest {_MOST} runs)"
    coming = TaskState.objects.using(using).select_related("task").order_by("wake_at")
    for state in coming.filter(wake_at__isnull=False)[:5]:
        yield f"to come: {state.task.name} at {state.due_at:%Y-%m-%d %H:%M:%S}"
    for state in coming.exclude(quarantine="")[:5]:
        yield f"quarantined: {state.task.name}: {state.quarantine}"
