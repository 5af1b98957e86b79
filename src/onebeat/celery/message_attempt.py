"""Which attempt of which occurrence a message is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onebeat.core.attempts import Attempt
from onebeat.core.headers import DUE_HEADER, RUN_HEADER, TASK_HEADER


def of(message: Any) -> Attempt | None:
    """The attempt that a message is; None if no scheduler of onebeat sent it, and for an eager run.

    `message`: its headers, or a task's request; anything with `get`. A retry carries the headers of its first attempt.
    Celery gives them to no other task, but a person may hand them on (tenants, tracers): what a task calls has another
    root, and what replaces it says so.
    """
    uid = message.get(TASK_HEADER)
    if uid is None or message.get("is_eager") or message.get("replaced_task_nesting"):
        return None
    root = message.get("root_id")
    if root is not None and root != message.get("id"):
        return None
    try:
        due_at = datetime.fromisoformat(message.get(DUE_HEADER))
        attempt = Attempt(int(uid), due_at, int(message.get(RUN_HEADER) or 0), int(message.get("retries") or 0))
    except (TypeError, ValueError):
        return None
    # No scheduler of onebeat says what no row can hold.
    fits = abs(attempt.task_uid) < 2**63 and max(abs(attempt.run), abs(attempt.number)) < 2**31
    return attempt if fits and due_at.tzinfo is not None else None
