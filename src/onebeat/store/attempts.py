"""Outcomes: what workers tell of an occurrence. An attempt starts by compare-and-set; states only go forward."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Coalesce, Concat

from onebeat.core.text import storable
from onebeat.db import database_clock
from onebeat.models import Occurrence
from onebeat.models.instants import DatabaseNow

State = Occurrence.State


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one occurrence, as a message names it. `number` is 0, then one more for each retry."""

    task_uid: int
    due_at: datetime
    run: int
    number: int


class Outcome(StrEnum):
    """How an attempt ended. The comment says what the worker saw."""

    SUCCESS = "success"
    IGNORED = "ignored"  # the body raised `Ignore`, as `replace()` does
    RETRY = "retry"  # another attempt follows
    REQUEUED = "requeued"  # the body gave the message back to the broker: the same attempt may start again
    FAILURE = "failure"
    TIMEOUT = "timeout"  # a soft or hard time limit
    LOST = "lost"  # the worker's process died
    TERMINATED = "terminated"  # revoked while it ran
    REJECTED = "rejected"  # the body raised `Reject`
    REVOKED = "revoked"  # before it ran, as are those below
    EXPIRED = "expired"
    UNKNOWN = "unknown"  # no such task in this worker
    INVALID = "invalid"  # a message that the worker cannot read


_STATES = {Outcome.SUCCESS: State.SUCCEEDED, Outcome.IGNORED: State.SUCCEEDED, Outcome.RETRY: State.STARTED}
_NEVER_RAN = {Outcome.REVOKED, Outcome.EXPIRED, Outcome.UNKNOWN, Outcome.INVALID}


class StartVerdict(StrEnum):
    """What a worker learns before it runs a body."""

    STARTED = "started"  # this execution is the attempt
    COPY = "copy"  # another execution is or was
    PRUNED = "pruned"  # nobody can tell: the ledger has no such occurrence any more


@dataclass(frozen=True, slots=True)
class StartResult:
    """The answer to a start. `wait`: of a copy, when the same attempt may be started again."""

    verdict: StartVerdict
    wait: timedelta | None = None


def begin(
    using: str, attempt: Attempt, token: int, worker: str, *, again_after: timedelta | None = None
) -> StartResult:
    """Start an attempt: only if no attempt of the same number or a later one has started.

    `token`: a new random number that names this start. Asking again with it after a lost reply gives the same answer.
    `again_after`: an attempt that started so long ago and has not ended may be started again (None: never).
    """
    rows = _rows(using, attempt)
    started = {
        **_taken(attempt, State.STARTED),
        "start_token": token,
        "started_at": DatabaseNow(),
        "finished_at": None,
        "worker": worker[:255],
        "outcome": "",
        "error": "",
    }
    if rows.filter(_later(attempt), ~Q(state=State.SKIPPED)).update(**started):
        return StartResult(StartVerdict.STARTED)
    found = rows.values("state", "attempt", "start_token", "started_at", "finished_at").first()
    if found is None:
        return StartResult(StartVerdict.PRUNED)
    if found["start_token"] == token:
        return StartResult(StartVerdict.STARTED)
    if found["state"] == State.SKIPPED and rows.filter(_later(attempt)).update(**_unskipped(), **started):
        return StartResult(StartVerdict.STARTED)
    count = F("duplicate_deliveries") + 1
    since = found["started_at"] if found["attempt"] == attempt.number and found["finished_at"] is None else None
    if again_after is not None and since is not None:
        left = since + again_after - database_clock.now(using)
        if left > timedelta(0):
            return StartResult(StartVerdict.COPY, left)
        same = rows.filter(attempt=attempt.number, start_token=found["start_token"], finished_at=None)
        if same.update(**started, duplicate_deliveries=count):
            return StartResult(StartVerdict.STARTED)
    rows.update(duplicate_deliveries=count)
    return StartResult(StartVerdict.COPY)


def end(
    using: str, attempt: Attempt, token: int | None, outcome: Outcome, error: str = "", *, worker: str = ""
) -> bool:
    """Record how an attempt ended. Returns whether it was still to be recorded.

    `token`: the one it began with; None when that was not recorded, or when the end is told by another process than
    the one that ran it. `error` is cut to what its column holds. A success is never overwritten by the same attempt.
    """
    state = _STATES.get(outcome, State.FAILED)
    which = _running(attempt, token, ran=outcome not in _NEVER_RAN)
    if state == State.SUCCEEDED:
        which |= Q(attempt=attempt.number) & ~Q(state=State.SUCCEEDED)
    rows = _rows(using, attempt).filter(which)
    if outcome in _NEVER_RAN:
        rows = rows.exclude(state=State.SKIPPED)  # the verdict not to send it has come true after all
    # Never without a word: failures are looked up by it.
    error = error if error or state != State.FAILED else outcome.value
    told = {"finished_at": DatabaseNow(), "outcome": outcome.value, "error": storable(error, 500)}
    if token is not None:
        return bool(rows.update(state=state, **told))
    return bool(rows.update(**_unskipped(), **_taken(attempt, state), **told, worker=worker[:255]))


def put_back(using: str, attempt: Attempt, token: int | None) -> bool:
    """The message goes back to the broker unchanged: the same attempt may start again."""
    return bool(
        _rows(using, attempt)
        .filter(_running(attempt, token))
        .update(
            attempt=attempt.number - 1 if attempt.number else None,
            start_token=None,
            finished_at=DatabaseNow(),
            outcome=Outcome.REQUEUED.value,
        )
    )


def _rows(using: str, attempt: Attempt) -> models.QuerySet[Occurrence, Any]:
    """The row that a message speaks of, by what it is: a restored database may give every key away again."""
    return Occurrence.objects.using(using).filter(task_uid=attempt.task_uid, due_at=attempt.due_at, run=attempt.run)


def _later(attempt: Attempt) -> Q:
    """No attempt of this number or a later one has started."""
    return Q(attempt=None) | Q(attempt__lt=attempt.number)


def _running(attempt: Attempt, token: int | None, *, ran: bool = True) -> Q:
    """The attempt is the one that this execution began and is still to end."""
    if token is not None:
        return Q(start_token=token, finished_at=None)
    # Not known by its token: what never ran (`ran`) must not end an attempt of the same number that does.
    return _later(attempt) | Q(attempt=attempt.number, finished_at=None) if ran else _later(attempt)


def _taken(attempt: Attempt, state: str) -> dict[str, Any]:
    """What a worker's word says of the sending: the broker had the message, and no scheduler has to send it. The one
    that is about to say so, or to recover it, finds no claim.
    """
    return {
        "state": state,
        "attempt": attempt.number,
        "sent_at": Coalesce(F("sent_at"), DatabaseNow()),
        "claim_token": None,
        "lease_until": None,
    }


def _unskipped() -> dict[str, Any]:
    """For a row that may be skipped: it ran, so it has no reason not to. To be set before the state, since MySQL
    computes each column from those it has set already.
    """
    skipped = When(state=State.SKIPPED, then=Concat(Value("ran although it was skipped: "), F("reason")))
    return {"detail": Case(skipped, default=F("detail"), output_field=models.TextField()), "reason": ""}
