"""Before the body: record that an attempt starts, and let nothing but the attempt itself start if it is guarded."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from functools import partial
from typing import Any

from celery.exceptions import Ignore, Reject
from django.db import Error

from onebeat.celery import message_attempt, worker_db
from onebeat.conf import current
from onebeat.store import attempts
from onebeat.store.attempts import Attempt, StartResult, StartVerdict

logger = logging.getLogger("onebeat")

#: What is noted on a task's request: the token of its start, and whether it is a copy that must not run.
TOKEN, COPY = "onebeat_start", "onebeat_copy"


def record(task: Any) -> None:
    """Note the start of a task that is not guarded. A copy runs; the newest start of an attempt is the one that
    counts.
    """
    attempt = message_attempt.of(task.request)
    if attempt is None:
        return
    token = _token()
    begun = worker_db.quietly(partial(_begin, task, attempt, token, timedelta(0)), keep=True)
    if begun is not None and begun.verdict == StartVerdict.STARTED:
        setattr(task.request, TOKEN, token)


def once(task: Any, restart_after: float | None) -> None:
    """Let a guarded task start only if it is the attempt. Raises Ignore for a copy, and the database's error if it
    cannot be asked and the settings say so.
    """
    request = task.request
    attempt = message_attempt.of(request)
    if attempt is None or getattr(request, TOKEN, None) is not None:
        return
    token = _token()
    after = None if restart_after is None else timedelta(seconds=restart_after)
    try:
        begun = worker_db.ask(partial(_begin, task, attempt, token, after), keep=True)
    except Error as error:
        if current().guard_without_database == "raise":
            raise
        logger.warning("%s[%s] runs unguarded, the database cannot be asked: %s", task.name, request.id, error)
        return
    if begun.verdict == StartVerdict.STARTED:
        setattr(request, TOKEN, token)
    elif begun.verdict == StartVerdict.PRUNED:
        logger.warning("%s[%s] runs unguarded: its occurrence is no longer in the ledger", task.name, request.id)
    else:
        setattr(request, COPY, True)
        if begun.wait is not None:
            _postpone(task, begun.wait)
        logger.info("%s[%s]: a second copy of attempt %d, not run", task.name, request.id, attempt.number)
        raise Ignore("a second copy of an attempt")


def _begin(task: Any, attempt: Attempt, token: int, again_after: timedelta | None, using: str) -> StartResult:
    return attempts.begin(using, attempt, token, str(task.request.hostname or ""), again_after=again_after)


def _postpone(task: Any, wait: timedelta) -> None:
    """Send this copy again, to come when the attempt may be started again, and be done with it now: the broker's own
    redelivery comes only once.
    """
    request = task.request
    seconds = max(0.1, wait.total_seconds())
    try:
        task.signature_from_request(request, countdown=seconds, retries=request.retries).apply_async()
    except Exception as error:
        raise Reject(error, requeue=True) from error
    logger.info("%s[%s]: a second copy, to be looked at again in %.1f s", task.name, request.id, seconds)


def _token() -> int:
    return secrets.randbits(62)
