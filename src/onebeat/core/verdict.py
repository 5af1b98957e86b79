"""What became of one nominal time, or will: facts, and the one sentence that is made from them alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypedDict

from onebeat.core.reasons import Reason
from onebeat.core.text import all_paused, by_whom, shown, span

#: What became of a time. due: its turn has come and nobody has decided; outside: before the task's start or after its
#: end; before: the task, or its present schedule, is younger; pruned: older than what is kept.
Kind = Literal[
    "sent", "sending", "coalesced", "missed", "skipped", "due", "waiting", "outside", "not scheduled", "before",
    "pruned", "unknown",
]  # fmt: skip
#: Whose absence an outage was, by its code in the ledger.
OUTAGES = {
    "down": "no scheduler was at work",
    "broker": "the broker was away",
    "database": "the schedulers were at work and could not reach the database",
}
#: Nobody calls a run late that was sent within this time.
_ON_TIME = timedelta(seconds=1)

#: Its first key is the reserved word `from`.
OutageFacts = TypedDict("OutageFacts", {"kind": str, "from": str, "to": str})


class PauseFacts(TypedDict):
    """A pause that the time falls into: of this task or of everything, by whom and why."""

    everything: bool
    by: str
    why: str


class Facts(TypedDict, total=False):
    """What a verdict is made of, ready to be written as JSON. Instants are ISO 8601 in UTC; what is unknown is left
    out or None.
    """

    task: str
    #: The nominal time, or the time that was asked for where the schedule names none.
    at: str
    due_at: str
    run: int
    #: The state of the ledger's row, if there is one.
    state: str
    decided_at: str
    last_due_at: str
    reason: str
    detail: str
    #: The nominal time that stands for it, or whose run was open.
    into: str
    sent_at: str
    late_seconds: float
    claims: int
    celery_task_id: str
    #: Which attempt started last, from 1.
    attempt: int
    started_at: str
    finished_at: str
    duration_seconds: float
    outcome: str
    error: str
    outage: OutageFacts
    #: The scheduler that claimed it, as host:pid, and whether its lease has not ended.
    scheduler: str | None
    leased: bool
    #: When its message is to leave, and the database's present instant.
    leaves_at: str
    now: str
    pause: PauseFacts
    #: Whether a scheduler is able to send now; if none is, until when one was.
    able: bool
    able_until: str | None
    #: Since when the task has its present schedule, or is disabled.
    since: str | None
    #: Where the task was declared, if it is disabled because it is not declared any more.
    left_code: str
    known_since: str
    #: There is no such task any more.
    deleted: bool
    pruned_before: str
    #: The task's last nominal time; it has none after that.
    finished_with: str
    starts_at: str
    ended_at: str
    #: The task's nominal times around `at`.
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a time, or will: its kind, and the facts behind it. `sentence` is for people."""

    kind: Kind
    facts: Facts = field(default_factory=Facts)

    @property
    def sentence(self) -> str:
        """The facts as one sentence."""
        facts = self.facts
        what = f"{facts['task']!r} at {_shown(facts['at'])}"
        match self.kind:
            case "sent":
                return f"{what}{_requested(facts)} {_sent(facts)}{_outcome(facts)}."
            case "sending":
                return f"{what}{_requested(facts)} {_sending(facts)}."
            case "coalesced" | "missed":
                return f"{what}{_requested(facts)} {_missed(facts)}."
            case "skipped" if "state" in facts:
                return f"{what}{_requested(facts)} was skipped: {_skipped(facts)}."
            case "skipped":
                return f"{what} has no run: {_closed(facts)}."
            case "waiting":
                return f"{what} is to {_waiting(facts)}."
            case "due":
                return f"{what} is due and not decided yet: {_able(facts)}."
            case "outside":
                starts = facts.get("starts_at")
                words = f"starts at {_shown(starts)}" if starts else f"ended at {_shown(facts['ended_at'])}"
                return f"{what} has no run: the task {words}."
            case "not scheduled":
                return _not_scheduled(what, facts)
            case "before" if "known_since" in facts:
                return f"{what}: the task exists, or is known here, since {_shown(facts['known_since'])}."
            case "before":
                since = _shown(facts["since"])
                return f"{what}: nothing is recorded; the task has its present schedule since {since}."
            case "pruned":
                return f"{what} is older than what is kept (since {_shown(facts['pruned_before'])})."
        if facts.get("deleted"):
            return f"{facts['task']!r} has been deleted, and nothing is recorded of {_shown(facts['at'])}."
        return f"{what}: nothing is recorded of it."


def _shown(text: str | None) -> str:
    return shown(datetime.fromisoformat(text)) if text else ""


def _requested(facts: Facts) -> str:
    return f" (run {facts['run']}, by hand)" if facts["run"] else ""


def _outage(facts: Facts) -> str:
    """The outage that the time fell into; empty if there was none."""
    if "outage" not in facts:
        return ""
    outage = facts["outage"]
    kind = OUTAGES.get(outage["kind"], outage["kind"])
    return f"{kind} from {_shown(outage['from'])} to {_shown(outage['to'])}"


def _sent(facts: Facts) -> str:
    if "late_seconds" not in facts:
        return "was sent"
    late = timedelta(seconds=facts["late_seconds"])
    if late <= _ON_TIME:
        return f"was sent on time, {max(0, round(late.total_seconds() * 1000))} ms after it"
    outage = _outage(facts)
    return f"was sent late, by {span(late)}" + (f" ({outage})" if outage else "")


def _outcome(facts: Facts) -> str:
    took = f" after {span(timedelta(seconds=facts['duration_seconds']))}" if "duration_seconds" in facts else ""
    match facts["state"]:
        case "started" if "finished_at" in facts:
            return f", and its attempt {facts.get('attempt', 1)} is over; another one follows"
        case "started":
            return ", and a worker has started it and not said yet that it is done"
        case "succeeded":
            return f", and succeeded{took}"
        case "failed":
            error = facts.get("error") or facts.get("detail")
            return f", and failed{took}" + (f": {error}" if error else "")
    return ""


def _sending(facts: Facts) -> str:
    whom = f"the scheduler {facts['scheduler']}" if facts.get("scheduler") else "the scheduler"
    if facts["leased"]:
        return f"is being sent by {whom}"
    detail = f" ({facts['detail']})" if facts.get("detail") else ""
    return f"was claimed by {whom} and not sent{detail}; another is to take it"


def _missed(facts: Facts) -> str:
    outage = _outage(facts)
    because = f": {outage}" if outage else ""
    if facts["reason"] == Reason.COALESCED:
        named = f"the one of {_shown(facts['into'])}" if "into" in facts else "a later one"
        return f"was missed and had no run of its own, {named} stands for it{because}"
    detail = f": {facts['detail']}" if "detail" in facts else ""
    return f"was missed and not made up for{detail}{because}"


def _skipped(facts: Facts) -> str:
    reason, detail = facts["reason"], facts.get("detail", "")
    match reason:
        case Reason.OVERLAP:
            return f"the run of {_shown(facts.get('into')) or 'an earlier time'} was still open"
        case Reason.PAUSED if detail:
            return detail
        case Reason.PRUNED:
            detail = ""
    return ": ".join(filter(None, [Reason.sentence_of(reason), detail, _outage(facts)]))


def _closed(facts: Facts) -> str:
    """Why the task has no times at present."""
    if facts["reason"] == Reason.QUARANTINED:
        return f"the task is quarantined: {facts['detail']}"
    since = f" (since {_shown(facts['since'])})" if facts.get("since") else ""
    left = f", since it is no longer declared in {facts['left_code']}" if "left_code" in facts else ""
    return f"the task is disabled{left}{since}"


def _waiting(facts: Facts) -> str:
    leaves = "" if facts["leaves_at"] == facts["due_at"] else f"leave at {_shown(facts['leaves_at'])}"
    if facts["due_at"] <= facts["now"]:
        return f"{leaves}: its jitter"
    if pause := facts.get("pause"):
        own = f"the task is paused{by_whom(pause['by'], pause['why'])}"
        return f"come, and is to be skipped: {all_paused(pause['by'], pause['why']) if pause['everything'] else own}"
    return f"come, to {leaves}" if leaves else "come"


def _able(facts: Facts) -> str:
    """Whether somebody could send it now."""
    if facts["able"]:
        return "the schedulers are at work"
    last = facts["able_until"]
    return f"no scheduler has been able to send since {_shown(last)}" if last else "no scheduler has ever run"


def _not_scheduled(what: str, facts: Facts) -> str:
    if "finished_with" in facts:
        return f"{what} has no run: the task has finished, with {_shown(facts['finished_with'])}."
    if "due_at" in facts:
        return f"{what} has no run: the task runs once, at {_shown(facts['due_at'])}."
    before, after = facts["before"], facts["after"]
    near = [f"the one before is {_shown(before)}"] if before else []
    near += [f"the next is {_shown(after)}"] if after else ["none follows"]
    where = f"{facts['task']!r} has no run at {_shown(facts['at'])}"
    return f"{where}: it is not on its schedule; {', '.join(near)}."
