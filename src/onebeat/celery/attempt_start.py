"""Before the body: note that an attempt starts, and let nothing but the attempt itself start if it is guarded."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from typing import Any

from celery.exceptions import Ignore, Reject
from django.db import Error

from onebeat.celery import message_attempt
from onebeat.celery.recorder import recorder
from onebeat.conf import current
from onebeat.core import clock
from onebeat.core.attempts import Attempt, StartVerdict
from onebeat.core.headers import AWAITED_HEADER
from onebeat.store import attempts
from onebeat.store.attempts import Run

logger = logging.getLogger("onebeat")

#: What is noted on a task's request: its run, and whether it is a copy that must not run.
RUN, COPY = "onebeat_run_in_hand", "onebeat_copy"


def record(task: Any) -> None:
    """Note the start of a task that is not guarded. A copy runs; the newest start of an attempt is the one that
    counts.
    """
    attempt = message_attempt.of(task.request)
    if attempt is not None:
        _begun(task.request, run_of(task.request, attempt, guarded=False))


def once(task: Any, restart_after: float | None) -> None:
    """Let a guarded task start only if it is the attempt. Raises Ignore for a copy, and the database's error if it
    cannot be asked and the settings say so.
    """
    request = task.request
    attempt = message_attempt.of(request)
    if attempt is None or getattr(request, RUN, None) is not None:
        return
    run = run_of(request, attempt, guarded=True)
    token = run.token = secrets.randbits(62)
    after = None if restart_after is None else timedelta(seconds=restart_after)
    durable = current().guard_commit == "durable"
    try:
        begun = recorder().connection.ask(
            lambda using: attempts.begin(using, attempt, token, run.worker, again_after=after, durable=durable)
        )
    except Error as error:
        if current().guard_without_database == "raise":
            raise
        logger.warning("%s[%s] runs unguarded, the database cannot be asked: %s", task.name, request.id, error)
        _begun(request, run)
        return
    if begun.verdict == StartVerdict.STARTED:
        run.start_is_known = True
        setattr(request, RUN, run)
    elif begun.verdict == StartVerdict.PRUNED:
        logger.warning("%s[%s] runs unguarded: its occurrence is no longer in the ledger", task.name, request.id)
    else:
        setattr(request, COPY, True)
        if begun.wait is not None:
            _postpone(task, begun.wait)
        logger.info("%s[%s]: a second copy of attempt %d, not run", task.name, request.id, attempt.number)
        raise Ignore("a second copy of an attempt")


def run_of(request: Any, attempt: Attempt, *, guarded: bool) -> Run:
    """The run of a message, as yet without its start."""
    awaited = bool(request.get(AWAITED_HEADER))
    return Run(attempt, str(request.get("hostname") or ""), decides=guarded or awaited, awaited=awaited)


def _begun(request: object, run: Run) -> None:
    run.token, run.began = run.token or secrets.randbits(62), clock.monotonic()
    setattr(request, RUN, run)
    recorder().put(run)


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
