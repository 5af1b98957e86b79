"""Outcomes: what workers tell of an occurrence, written into its row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter

from django.db import connections

from onebeat.core import attempts as rules
from onebeat.core import clock
from onebeat.core.attempts import Attempt, End, Outcome, Record, StartResult, StartVerdict
from onebeat.core.text import storable
from onebeat.db import database_clock, reads, transactions, upserts, utc_columns
from onebeat.store.occurrences import TABLE

#: How a row is found: by what it is. A restored database may give every key away again.
_KEY = {"task_uid": "bigint", "due_at": "timestamp", "run": "integer"}
_TYPES = {
    "start_token": "bigint",
    **dict.fromkeys(("sent_at", "started_at", "finished_at"), "timestamp"),
    **dict.fromkeys(("attempt", "duplicate_deliveries"), "integer"),
}
_COLUMNS = {field.name: _TYPES.get(field.name, "text") for field in fields(Record)}
_INSTANTS = [place for place, kind in enumerate(_COLUMNS.values()) if kind == "timestamp"]
_values = attrgetter(*_COLUMNS)
_NOW = timedelta(0)


@dataclass(slots=True, eq=False)
class Run:
    """One execution of an attempt, as the worker sees it. Instants are readings of this process's stopwatch
    (`clock.monotonic`): what the database's clock showed then is known when they are written.
    """

    attempt: Attempt
    worker: str
    #: Names its start; None: another process ran it than the one that tells of it, or its start is not known.
    token: int | None = None
    began: float | None = None
    end: tuple[float, Outcome, str] | None = None
    #: Whether the ledger knows of the start.
    start_is_known: bool = False
    #: Whether something is decided by its end, which therefore is never dropped; and whether something waits for it.
    decides: bool = False
    awaited: bool = False


def begin(
    using: str,
    attempt: Attempt,
    token: int,
    worker: str,
    *,
    again_after: timedelta | None = None,
    durable: bool = True,
) -> StartResult:
    """Start an attempt: only if no attempt of the same number or a later one has started.

    `token`: a new random number that names this start. Asking again with it after a lost reply gives the same answer.
    `again_after`: an attempt that started so long ago and has not ended may be started again (None: never). `durable`:
    whether the answer waits until the disk has it, where the database gives the choice (PostgreSQL).
    """
    link = connections[using]
    now, params = database_clock.clock_sql(using)
    lead, beside = "", ""
    if link.vendor == "postgresql" and not durable:  # holds for the statement's own transaction
        lead = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
        beside = " FROM quick"
    sql = (
        f"{lead}UPDATE {TABLE} SET state = 'started', attempt = %s, sent_at = COALESCE(sent_at, {now}),"
        f" start_token = %s, started_at = {now}, finished_at = NULL,"
        f" worker = %s, outcome = '', error = ''{beside} WHERE task_uid = %s AND due_at = %s AND run = %s"
        " AND (attempt IS NULL OR attempt < %s) AND state <> 'skipped'"
    )
    key = utc_columns.to_columns(using, (attempt.task_uid, attempt.due_at, attempt.run))
    with link.cursor() as cursor:
        cursor.execute(sql, [attempt.number, *params, token, *params, worker[:255], *key, attempt.number])
        if cursor.rowcount:
            return StartResult(StartVerdict.STARTED)
    with transactions.short_transaction(using):
        found = _locked(using, [attempt], wait=True)
        if not found:
            return StartResult(StartVerdict.PRUNED)
        ((pk, record),) = found.values()
        at = database_clock.now(using)
        changed, answer = rules.start(record, attempt.number, token, worker[:255], at, again_after=again_after)
        _update(using, [(pk, record, changed)])
    return answer


def write(using: str, runs: Sequence[Run], *, durable: bool = True) -> list[Run]:
    """Write these runs into the ledger, in one short transaction and never waiting for anybody. Returns those whose
    rows somebody else holds just now; a run whose occurrence has been pruned is passed over.

    `durable`: as for `begin`.
    """
    with transactions.short_transaction(using):
        shown, link = clock.monotonic(), connections[using]
        if link.vendor == "postgresql" and not durable:
            with link.cursor() as cursor:
                cursor.execute("SELECT set_config('synchronous_commit', 'off', true)")
        now = database_clock.now(using)

        def instant(reading: float) -> datetime:
            return now if clock.pinned() else now - timedelta(seconds=shown - reading)

        def when(run: Run) -> float:
            return run.began if run.began is not None else run.end[0] if run.end else shown

        found = _locked(using, [run.attempt for run in runs])
        records = {key: record for key, (_, record) in found.items()}
        for run in sorted(runs, key=when):
            if (record := records.get(_key(run.attempt))) is not None:
                records[_key(run.attempt)] = _written(record, run, instant)
        _update(using, [(pk, record, records[key]) for key, (pk, record) in found.items()])
    missing = [run for run in runs if _key(run.attempt) not in found]
    locked = _there(using, [run.attempt for run in missing]) if missing else set()
    return [run for run in missing if _key(run.attempt) in locked]


def _written(record: Record, run: Run, instant: Callable[[float], datetime]) -> Record:
    """The record with what a run says."""
    number, worker = run.attempt.number, run.worker[:255]
    ending = None if run.end is None else End(instant(run.end[0]), run.end[1], storable(run.end[2], 500))
    if run.token is not None and run.began is not None:
        others = record.start_token != run.token and record.started_at is not None
        if ending and ending.outcome == Outcome.REQUEUED and others and record.started_at >= ending.at:  # type: ignore[operator]
            return record  # it has been started again meanwhile
        if not run.start_is_known or record.earlier_than(number):
            at = instant(run.began)
            record, _ = rules.start(record, number, run.token, worker, at, again_after=_NOW)
    return record if ending is None else rules.end(record, number, run.token, ending, worker)


def _key(attempt: Attempt) -> tuple[int, datetime, int]:
    return attempt.task_uid, attempt.due_at, attempt.run


def _keys(using: str, attempts: Iterable[Attempt]) -> list[list[object]]:
    return utc_columns.to_rows(using, sorted({_key(attempt) for attempt in attempts}))


def _locked(
    using: str, attempts: Sequence[Attempt], *, wait: bool = False
) -> dict[tuple[int, datetime, int], tuple[int, Record]]:
    """The rows of these attempts by what they are, each with its primary key, locked until the transaction ends."""
    lock = reads.Lock.WAIT if wait else reads.Lock.SKIP
    columns = ("id", *_KEY, *_COLUMNS)
    found = {}
    for pk, uid, due_at, run, *values in reads.by_keys(using, TABLE, _KEY, _keys(using, attempts), columns, lock):
        for place in _INSTANTS:
            values[place] = utc_columns.from_column(values[place])
        found[uid, _utc(due_at), run] = pk, Record(*values)
    return found


def _there(using: str, attempts: Sequence[Attempt]) -> set[tuple[int, datetime, int]]:
    """Which of these are in the ledger."""
    rows = reads.by_keys(using, TABLE, _KEY, _keys(using, attempts), _KEY)
    return {(uid, _utc(due_at), run) for uid, due_at, run in rows}


def _utc(value: object) -> datetime:
    instant = utc_columns.from_column(value)
    assert instant is not None
    return instant


def _update(using: str, rows: Iterable[tuple[int, Record, Record]]) -> None:
    """Write what has changed in these rows: primary key, what stands there, what is to stand there."""
    changed = [(pk, *_values(after)) for pk, before, after in rows if after != before]
    upserts.update_rows(using, TABLE, ["id"], _COLUMNS, utc_columns.to_rows(using, changed))
