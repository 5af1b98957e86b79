"""What workers' words make of the record of an occurrence. States only move forward, in whatever order the words come.

Pure. Words of one attempt come from several processes, each with the instant at which the thing happened: the process
that runs the body, others that run its copies or its retries, and a worker's main process, which tells of a child that
is gone. They are written down in another order, so the instants decide, and not the order of writing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum


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


_STARTED, _SUCCEEDED, _FAILED, _SKIPPED = "started", "succeeded", "failed", "skipped"
_STATES = {Outcome.SUCCESS: _SUCCEEDED, Outcome.IGNORED: _SUCCEEDED, Outcome.RETRY: _STARTED}
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


@dataclass(frozen=True, slots=True)
class End:
    """How and when an attempt ended, and why: what it raised, or why it did not run."""

    at: datetime
    outcome: Outcome
    error: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What a row of the ledger says of its newest attempt, and what an attempt changes in it."""

    state: str
    reason: str = ""
    detail: str = ""
    sent_at: datetime | None = None
    attempt: int | None = None
    start_token: int | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str = ""
    outcome: str = ""
    error: str = ""
    duplicate_deliveries: int = 0

    def earlier_than(self, number: int) -> bool:
        """Whether no attempt of this number or a later one has started."""
        return self.attempt is None or self.attempt < number


def start(
    record: Record, number: int, token: int, worker: str, at: datetime, *, again_after: timedelta | None = None
) -> tuple[Record, StartResult]:
    """An attempt starts: only if no attempt of the same number or a later one has. Returns the new record with the
    answer.

    `token`: a random number that names this start; asked again with it, the answer is the same. `again_after`: an
    attempt that started so long ago and has not ended may be started again (None: never).
    """
    started = StartResult(StartVerdict.STARTED)
    copy = StartResult(StartVerdict.COPY)
    if record.start_token == token:
        return record, started
    own = {"start_token": token, "started_at": at, "worker": worker}
    begun = replace(_taken(record, number, _STARTED, at), **own, finished_at=None, outcome="", error="")  # type: ignore[arg-type]
    if record.earlier_than(number):
        return begun, started
    same = record.attempt == number
    since, ended = record.started_at, record.finished_at
    if same and record.start_token is None and ended is not None and at < ended:
        return replace(record, **own), started  # type: ignore[arg-type]  # its end, told from outside, came first
    if not same and since is not None and at < since:
        return record, copy  # the word of an earlier attempt that comes late
    counted = record.duplicate_deliveries + 1
    if again_after is not None and same and since is not None and ended is None:
        left = since + again_after - at
        if left <= timedelta(0):
            return replace(begun, duplicate_deliveries=counted), started
        if again_after:
            return record, StartResult(StartVerdict.COPY, left)
    return replace(record, duplicate_deliveries=counted), copy


def end(record: Record, number: int, token: int | None, ending: End, worker: str) -> Record:
    """An attempt ends. A success is never overwritten by the same attempt.

    `token`: the one it began with; None where its start is not known, or where another process tells of it than the one
    that ran it.
    """
    if ending.outcome == Outcome.REQUEUED:
        return _put_back(record, number, token, ending)
    state, never_ran = _STATES.get(ending.outcome, _FAILED), ending.outcome in _NEVER_RAN
    which = _running(record, number, token, ending.at, ran=not never_ran)
    if state == _SUCCEEDED:
        which = which or (record.attempt == number and record.state != _SUCCEEDED)
    if not which or (never_ran and record.state == _SKIPPED):  # skipped: what was decided has come true after all
        return record
    if token is None:
        first = record.earlier_than(number)
        record = replace(_taken(record, number, state, ending.at), worker=worker)
        if first:
            record = replace(record, start_token=None, started_at=None)
    # Never without a word: failures are looked up by it.
    error = ending.error if ending.error or state != _FAILED else ending.outcome.value
    finished = max(ending.at, record.started_at or ending.at)
    return replace(record, state=state, finished_at=finished, outcome=ending.outcome.value, error=error)


def _put_back(record: Record, number: int, token: int | None, ending: End) -> Record:
    """The message goes back to the broker unchanged: the same attempt may start again."""
    if not _running(record, number, token, ending.at):
        return record
    back = number - 1 if number else None
    return replace(record, attempt=back, start_token=None, finished_at=ending.at, outcome=ending.outcome.value)


def _running(record: Record, number: int, token: int | None, at: datetime, *, ran: bool = True) -> bool:
    """Whether the attempt is the one that this execution began and is still to end."""
    if token is not None:
        return record.start_token == token and record.finished_at is None
    # Not known by its token: what never ran (`ran`) must not end an attempt of the same number that does, and nothing
    # ends an attempt that started afterwards.
    open_since = record.started_at if record.attempt == number and record.finished_at is None else None
    return record.earlier_than(number) or (ran and open_since is not None and open_since <= at)


def _taken(record: Record, number: int, state: str, at: datetime) -> Record:
    """What a worker's word says of the sending: the broker had the message, and no scheduler has to send it. The one
    that is about to say so, or to recover it, finds no claim. A skipped one ran after all: it has no reason not to.
    """
    skipped = record.state == _SKIPPED
    detail = f"ran although it was skipped: {record.reason}" if skipped else record.detail
    sent_at = record.sent_at or at
    taken = replace(record, state=state, attempt=number, sent_at=sent_at)
    return replace(taken, reason="", detail=detail)
