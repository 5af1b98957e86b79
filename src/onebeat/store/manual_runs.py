"""Runs that somebody asked for, beside the schedule: occurrences with a number of their own that move nothing.

Such an occurrence is a batch that nobody holds, so that any scheduler takes it up as it takes up those of a lost one.
Policy has no say in it: neither pause nor grace nor a disabled task.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from onebeat.core import identity
from onebeat.core.reasons import Reason
from onebeat.db import bulk_rows, upserts
from onebeat.errors import Unschedulable
from onebeat.models import Occurrence
from onebeat.store import batches, occurrences
from onebeat.store.definitions import Definition


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was asked for."""

    #: The name of the periodic task.
    task: str
    #: The nominal time it stands for: the present instant, or the time that is caught up (UTC).
    due_at: datetime
    #: Its number beside the schedule's own, which is 0.
    run: int
    #: The id that its message carries, by which Celery's result is found.
    celery_task_id: uuid.UUID


def ask(using: str, task: int, name: str, uid: int, due_at: datetime, now: datetime, detail: str) -> Run:
    """Ask for a run in the present transaction. Each call is a run of its own, however many come at once."""
    space, number, token = occurrences.namespace(using), 1, batches.new_token(now)
    while True:
        run = Run(name, due_at, number, identity.celery_task_id(space, uid, due_at, number))
        one = Occurrence(
            task_id=task,
            task_uid=uid,
            task_name=name,
            due_at=due_at,
            run=number,
            state=Occurrence.State.CLAIMED,
            detail=detail,
            celery_task_id=run.celery_task_id,
            claim_token=token,
            decided_at=now,
        )
        columns, (values,) = bulk_rows.insertable(using, [one])
        _, made = upserts.insert_one_or_find(using, occurrences.TABLE, list(columns), values, "id")
        if made:
            batches.add(using, token, None, now)
            return run
        number += 1


def refusal(definition: Definition | None) -> tuple[Reason, str] | None:
    """Why a run that was asked for cannot be sent, as (reason, detail); None: it is sent."""
    if definition is None:
        return Reason.CANCELLED, "the task is gone"
    try:
        if definition.broken:
            raise Unschedulable(definition.broken)
        definition.arguments()
        definition.more_options()
    except Unschedulable as bad:
        return Reason.QUARANTINED, str(bad)
    return None
