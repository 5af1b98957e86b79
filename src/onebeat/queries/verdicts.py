"""What the ledger says of one nominal time, in one sentence and as facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from onebeat.core.reasons import Reason
from onebeat.models import Beat, Occurrence, Outage
from onebeat.store import outages

#: Sent within so long after its time, nobody calls it late.
_ON_TIME = timedelta(seconds=1)
State = Occurrence.State


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a time, or will.

    `kind`: sent, sending, coalesced, skipped, missed, due (its turn has come and nobody has decided), waiting, outside
    (before the task's start or after its end), not scheduled, before (the present definition is younger), pruned, or
    unknown. `sentence` is for people; `facts` can be written as JSON, its instants are ISO 8601 in UTC.
    """

    kind: str
    sentence: str
    facts: dict[str, Any] = field(default_factory=dict)


def shown(instant: datetime) -> str:
    """An instant for people: UTC, with a fraction only where it has one."""
    text = instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return text.removesuffix(".000000") + " UTC"


def span(duration: timedelta) -> str:
    """A duration for people, in its two largest units."""
    seconds = duration.total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    days, hours = divmod(minutes // 60, 24)
    parts = [(days, "d"), (hours, "h"), (minutes % 60, "min"), (int(seconds % 60), "s")]
    named = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(named[:2])


def iso(instant: datetime | None) -> str | None:
    """An instant for machines."""
    return None if instant is None else instant.astimezone(UTC).isoformat()


def away(outage: Outage) -> str:
    """An outage in words."""
    return f"{outage.get_kind_display()} from {shown(outage.began_at)} to {shown(outage.ended_at)}"


def of_row(using: str, row: Occurrence, instant: datetime, now: datetime) -> Verdict:
    """What the ledger's row says of `instant`, one of the times it stands for."""
    outage = outages.over(using, instant)
    facts = _facts(row, outage)
    what = f"{row.task_name!r} at {shown(instant)}" + (f" (run {row.run}, by hand)" if row.run else "")
    if row.state == State.CLAIMED:
        return _claimed(using, row, what, facts, now)
    if row.state != State.SKIPPED:
        return Verdict("sent", f"{what} {_sent(row, outage)}{_outcome(row)}.", facts)
    because = f": {away(outage)}" if outage else ""
    detail = f": {row.detail}" if row.detail else ""
    into = "" if row.into_at is None else shown(row.into_at)
    match row.reason:
        case "coalesced":
            named = f"the one of {into}" if into else "a later one"
            return Verdict(
                Reason.COALESCED, f"{what} was missed and had no run of its own, {named} stands for it{because}.", facts
            )
        case "missed":
            return Verdict(Reason.MISSED, f"{what} was missed and not made up for{detail}{because}.", facts)
        case "expired":
            why = "was missed, and the task had ended before it could be made up for"
            return Verdict("skipped", f"{what} {why}{because}.", facts)
        case "overlap":
            return Verdict(
                "skipped", f"{what} was skipped: the run of {into or 'an earlier time'} was still open.", facts
            )
        case "paused":
            said = row.detail or "the task was paused"
            return Verdict("skipped", f"{what} was skipped: {said}.", facts)
    why = Reason.sentence_of(row.reason)
    return Verdict("skipped", f"{what} was skipped: {why}{'' if row.reason == 'pruned' else detail}.", facts)


def _facts(row: Occurrence, outage: Outage | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "task": row.task_name,
        "due_at": iso(row.due_at),
        "run": row.run,
        "state": str(row.state),
        "decided_at": iso(row.decided_at),
    }
    more = {
        "last_due_at": iso(row.last_due_at),
        "reason": row.reason,
        "detail": row.detail,
        "into": iso(row.into_at),
        "sent_at": iso(row.sent_at),
        "late_seconds": None if row.sent_at is None else (row.sent_at - row.due_at).total_seconds(),
        "claims": row.claims if row.claims > 1 else None,
        "celery_task_id": None if row.state == State.SKIPPED else str(row.celery_task_id),
        "started_at": iso(row.started_at),
        "finished_at": iso(row.finished_at),
        "outcome": row.outcome,
        "error": row.error,
    }
    facts |= {name: value for name, value in more.items() if value not in (None, "")}
    if outage is not None:
        facts["outage"] = {"kind": str(outage.kind), "from": iso(outage.began_at), "to": iso(outage.ended_at)}
    return facts


def _sent(row: Occurrence, outage: Outage | None) -> str:
    if row.sent_at is None:
        return "was sent"
    late = row.sent_at - row.due_at
    if late <= _ON_TIME:
        return f"was sent on time, {max(0, round(late.total_seconds() * 1000))} ms after it"
    return f"was sent late, by {span(late)}" + (f" ({away(outage)})" if outage else "")


def _outcome(row: Occurrence) -> str:
    took = f" after {span(row.duration)}" if row.duration is not None else ""
    match row.state:
        case "started" if row.finished_at is not None:
            return f", and its attempt {(row.attempt or 0) + 1} is over; another one follows"
        case "started":
            return ", and a worker has started it and not said yet that it is done"
        case "succeeded":
            return f", and succeeded{took}"
        case "failed":
            error = row.error or row.detail
            return f", and failed{took}" + (f": {error}" if error else "")
    return ""


def _claimed(using: str, row: Occurrence, what: str, facts: dict[str, Any], now: datetime) -> Verdict:
    beat = Beat.objects.using(using).filter(pk=row.beat_id or 0).first()
    whom = f" {beat}" if beat else ""
    facts["scheduler"] = str(beat) if beat else None
    if row.lease_until is not None and row.lease_until > now:
        return Verdict("sending", f"{what} is being sent by the scheduler{whom}.", facts)
    return Verdict("sending", f"{what} was claimed by the scheduler{whom} and not sent; another is to take it.", facts)
