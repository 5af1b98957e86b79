"""The names that two schedulers must give the same thing without talking to each other."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def new_task_uid() -> int:
    """A random number from 1 to 2**63 - 1 for a task: its identity, which is never given to another.

    A row's primary key is no identity: after commits are lost, or a table was emptied, keys are given out again.
    """
    return secrets.randbits(63) or 1


def celery_task_id(namespace: uuid.UUID, task_uid: int, due_at: datetime, run: int = 0) -> uuid.UUID:
    """The Celery `task_id` of one occurrence: the same whoever publishes it, and however often.

    `namespace` is the random one of this database, so that a copied database never sends another's ids; `task_uid` is
    the task's, as `new_task_uid` made it. `run` is 0 for
    the schedule's own occurrence; a run by hand or a replay has its own number and so its own id. (RFC 9562, version
    5.)
    """
    return uuid.uuid5(namespace, f"{task_uid}/{(due_at - _EPOCH) // _MICROSECOND}/{run}")
