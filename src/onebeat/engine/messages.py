"""The message that an occurrence is sent as."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.core.headers import AWAITED_HEADER, BEAT_HEADER, DUE_HEADER, NAME_HEADER, RUN_HEADER, TASK_HEADER, free
from onebeat.core.message_request import NO_OPTIONS
from onebeat.dispatch.base import Message
from onebeat.store.occurrences import Claimed


def message(claimed: Claimed, now: datetime) -> Message:
    """The message of a claimed occurrence, published at about `now`, with every option its task has.

    The claim has seen that the task's arguments decode. `expires` of the task ends the message too: a worker that comes
    to it later must not run it. A last time that is only late keeps its run, and carries no end that has passed.
    """
    task = claimed.task
    args, kwargs, headers = task.arguments()
    options: dict[str, object] = {
        "queue": task.queue,
        "exchange": task.exchange,
        "routing_key": task.routing_key,
        "priority": task.priority,
    }
    ends = [end for end in (task.ends(),) if end is not None and end > now]
    if task.expire_seconds is not None:
        ends.append(now + timedelta(seconds=task.expire_seconds))
    options["expires"] = min(ends, default=None)
    more = {name: value for name, value in task.more_options().items() if name not in NO_OPTIONS}
    kept = {**more, **{name: value for name, value in options.items() if value not in (None, "")}}
    kept["headers"] = {
        **free(headers),
        BEAT_HEADER: True,
        NAME_HEADER: task.name,
        TASK_HEADER: claimed.task_uid,
        DUE_HEADER: claimed.due_at.isoformat(),
        RUN_HEADER: claimed.run,
        **({AWAITED_HEADER: True} if task.policy.overlap == "skip" else {}),
    }
    return Message(
        str(claimed.celery_task_id),
        task.task,
        args,
        kwargs,
        kept,
        periodic_task=task.id,
        claimed=claimed,
        size=len(task.args) + len(task.kwargs),
    )
