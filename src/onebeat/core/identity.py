"""The names that two schedulers must give the same thing without talking to each other."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def celery_task_id(namespace: uuid.UUID, task: int, due_at: datetime, run: int = 0) -> uuid.UUID:
    """The Celery `task_id` of one occurrence: the same whoever publishes it, and however often.

    `namespace` is the random one of this database, so that a copied database never sends another's ids. `run` is 0 for
    the schedule's own occurrence; a run by hand or a replay has its own number and so its own id. (RFC 9562, version
    5.)
    """
    return uuid.uuid5(namespace, f"{task}/{(due_at - _EPOCH) // _MICROSECOND}/{run}")
