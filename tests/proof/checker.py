"""The history checker: is what happened what was promised? Written from DESIGN.md, not from the engine's code.

`check` is a pure function. It takes nothing for granted of what schedulers do inside: it knows the definitions and when
they held, the faults, the ledger, the messages and the bodies that ran, and lists what does not fit together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from tests.proof.faults import Faults
from tests.proof.history import Arrival, Execution, Finding, History, Key, Kind, Reign, Row

SENT = ("sent", "started", "succeeded", "failed")
#: Reasons that a change of the task gives, and those that passing time gives.
_OF_CHANGES = ("edited", "disabled", "cancelled")
#: Ranges with these end in the moment of a change, the others with a time of the rule.
_BY_CHANGES = (*_OF_CHANGES, "quarantined")
_OF_TIME = ("coalesced", "missed", "expired")

#: Changes after which nothing is sent, whatever was planned or claimed before.
_ENDS: dict[str, Callable[[Reign], bool]] = {
    "was gone": lambda one: one.gone,
    "was disabled": lambda one: not one.enabled,
    "was paused": lambda one: one.paused,
}

T = TypeVar("T")
K = TypeVar("K")


def _key(one: Row | Arrival | Execution) -> Key:
    return one.task, one.due_at, one.run


def _grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: defaultdict[K, list[T]] = defaultdict(list)
    for one in things:
        found[key(one)].append(one)
    return dict(found)


def check(history: History) -> list[Finding]:
    """Everything that is missing, extra, early or unexplained; empty when the promises held."""
    return list(_Checker(history).findings())


class _Checker:
    def __init__(self, history: History) -> None:
        self.history = history
        self.faults = Faults(history)
        self.rows = _grouped(sorted(history.ledger, key=lambda row: (row.due_at, row.run)), lambda row: row.task)
        self.arrivals = _grouped(history.arrivals, _key)
        self.ran = _grouped(history.executions or (), _key)

    def findings(self) -> Iterator[Finding]:
        for task, reigns in self.history.tasks.items():
            rows = [row for row in self.rows.get(task, []) if not row.run]
            yield from self._accounted(task, reigns, rows)
            yield from self._one_verdict(task, rows)
            for row in rows:
                yield from self._row(task, reigns, row)
            yield from self._one_offs(task, reigns, rows)
            yield from self._one_at_a_time(task, reigns, rows)
        yield from self._messages()
        yield from self._bodies()

    # -- each nominal time ----------------------------------------------------------------------------------------

    def _accounted(self, task: str, reigns: Sequence[Reign], rows: Sequence[Row]) -> Iterator[Finding]:
        """Promise 6: sent, or a recorded reason; never nothing."""
        singles = {row.due_at for row in rows}
        ranges = [row for row in rows if row.state == "skipped" and row.through is not None]
        taken = {row.due_at for row in rows if row.claims or row.state != "skipped"}
        done: datetime | None = None
        for number, reign in enumerate(reigns):
            done = None if reign.rebased else done
            for due_at in reign.times if reign.one_off and done is None else ():
                if due_at in taken and (reign.named or due_at > reign.begins):
                    done = due_at  # a one-off is over with the first that is taken, whatever becomes of it
                    break
            for due_at in self._wanted(reigns, number):
                if done is not None and due_at > done:
                    break
                if due_at not in singles and not any(row.due_at <= due_at <= row.last for row in ranges):
                    yield Finding(Kind.LOST, task, due_at, "the ledger does not speak of it")

    def _wanted(self, reigns: Sequence[Reign], number: int) -> Iterator[datetime]:
        """The nominal times that must have a verdict by the end of the history."""
        reign = reigns[number]
        end = reigns[number + 1].begins if number + 1 < len(reigns) else self.history.ended - self.history.terms.slack
        if not reign.enabled or reign.broken or reign.gone:
            return
        if number + 1 < len(reigns) and self.faults.unseen(reign.settled, end):
            return  # a definition that came and went before anybody looked
        for due_at in reign.times:
            if reign.expires is not None and due_at > reign.expires:
                return
            # A change replaces what was planned, even in the moment in which it is due.
            if due_at < end - reign.jitter and (due_at > reign.settled or reign.named):
                yield due_at

    def _one_verdict(self, task: str, rows: Sequence[Row]) -> Iterator[Finding]:
        """Promises 2 and 6: one nominal time has one verdict."""
        ranges = [row for row in rows if row.through is not None]
        for row in rows:
            for other in ranges:
                # The end of a change's range is the moment of the change, and the next rule may begin there.
                ends = other.reason in _BY_CHANGES
                inside = other.due_at < row.due_at and (row.due_at < other.last if ends else row.due_at <= other.last)
                if inside and other is not row and row.state in SENT:
                    text = f"{row.state}, and skipped with those from {other.due_at} ({other.reason})"
                    yield Finding(Kind.CONTRADICTION, task, row.due_at, text)

    def _row(self, task: str, reigns: Sequence[Reign], row: Row) -> Iterator[Finding]:
        if row.state == "claimed":
            yield Finding(Kind.UNSENT, task, row.due_at, f"claimed {row.claims} times")
        # A range ends with a time of the rule, or with the moment of a change.
        ends = {row.due_at} if row.reason in _BY_CHANGES else {row.due_at, row.last}
        if not all(any(self._names(reigns, number, row, at) for number in range(len(reigns))) for at in ends):
            yield Finding(Kind.UNSCHEDULED, task, row.due_at, f"{row.state} {row.reason}".strip())
        elif row.state == "skipped":
            if text := self._unreasoned(reigns, row):
                yield Finding(Kind.UNREASONED, task, row.due_at, f"{row.reason} up to {row.last}: {text}")
        else:
            yield from self._sent(task, reigns, row)

    def _names(self, reigns: Sequence[Reign], number: int, row: Row, due_at: datetime) -> bool:
        """Whether a definition named this time while it was in force, or may have been."""
        reign = reigns[number]
        at = bisect_right(reign.times, due_at)
        if not at or reign.times[at - 1] != due_at or not reign.enabled or reign.gone:
            return False
        # What was planned before a change may be recorded as dropped by it, whenever it would have been due.
        dropped = row.state == "skipped" and row.reason in _OF_CHANGES
        ends = reigns[number + 1].settled if number + 1 < len(reigns) and not dropped else self.history.ended
        begins = reign.begins
        if number and self.faults.unseen(reigns[0].begins, begins):
            begins = reigns[0].begins  # a task is planned from its creation, as it is when it is first looked at
        return (reign.named or begins < due_at) and due_at <= ends

    def _one_offs(self, task: str, reigns: Sequence[Reign], rows: Sequence[Row]) -> Iterator[Finding]:
        ends = [*(one.begins for one in reigns[1:]), self.history.ended]
        first: datetime | None = None
        for reign, end in zip(reigns, ends, strict=True):
            first = None if reign.rebased else first
            for row in rows if reign.one_off else ():
                if row.state not in SENT or row.due_at not in reign.times or not reign.settled < row.due_at < end:
                    continue
                if first is not None:
                    yield Finding(Kind.UNSCHEDULED, task, row.due_at, f"a one-off that was sent for {first}")
                first = row.due_at

    # -- those that were skipped --------------------------------------------------------------------------------------

    def _unreasoned(self, reigns: Sequence[Reign], row: Row) -> str:
        """Why the recorded reason cannot be true; empty when it can."""
        decided = self.history.ended if row.claims or row.decided_at is None else row.decided_at
        # A decision is dated by its first statement, and may have read a change that was made a moment later.
        changes = [one for one in reigns[1:] if one.begins <= decided + self.history.terms.slack]
        ruling = self._ruling(reigns, row.due_at, decided)
        if row.reason in _OF_CHANGES:
            wanted = {"disabled": lambda one: not one.enabled, "cancelled": lambda one: one.gone}
            fits = wanted.get(row.reason, lambda one: one.rebased)
            return "" if any(map(fits, changes)) else "nobody had changed it so"
        if row.reason == "quarantined":
            return "" if any(one.broken for one in ruling) else "it could be sent"
        if row.reason == "paused":
            return "" if any(one.paused for one in ruling) else "it was not paused"
        if row.reason == "refused":
            return "" if self.faults.refused(row.task, row.due_at, decided) else "the broker refused nothing"
        if row.reason == "overlap":
            return self._no_overlap(row, ruling, decided)
        if row.reason in _OF_TIME:
            return self._not_missed(row, ruling, decided)
        return "an unknown reason"

    def _ruling(self, reigns: Sequence[Reign], begin: datetime, end: datetime) -> list[Reign]:
        """The definitions that held at some moment between two instants."""
        ends = [*(one.settled for one in reigns[1:]), self.history.ended]
        return [one for one, until in zip(reigns, ends, strict=True) if one.begins <= end and until >= begin]

    def _not_missed(self, row: Row, ruling: Sequence[Reign], decided: datetime) -> str:
        graces = [one.grace for one in ruling if one.grace is not None]
        beyond = bool(graces) and decided - row.last > min(graces)
        missed = decided - row.last > self.history.terms.late or self.faults.nobody(row.last, decided)
        match row.reason:
            case "expired":
                ends = [one.expires for one in ruling if one.expires is not None]
                if not ends or min(ends) >= decided:
                    return "the task had not ended"
                return "" if missed or row.claims else "schedulers were at work at its turn"
            case "missed":
                skips = any(one.missed == "skip" for one in ruling)
                return "" if beyond or (skips and missed) else "it was within its grace, or not missed at all"
        if not any(one.missed == "latest" for one in ruling):
            return "the policy coalesces nothing"
        if row.into is not None and row.into <= row.last:
            return f"into {row.into}, which is not later"
        if row.into is not None and not any(one.due_at <= row.into <= one.last for one in self.rows.get(row.task, [])):
            return f"into {row.into}, of which nothing is known"
        return "" if missed else "schedulers were at work at its turn"

    def _no_overlap(self, row: Row, ruling: Sequence[Reign], decided: datetime) -> str:
        if not any(one.overlap == "skip" for one in ruling):
            return "the policy allows overlap"
        if row.into is None or row.into >= row.due_at:
            return "" if row.claims else "no earlier run is named"
        bodies = self.ran.get((row.task, row.into, 0), [])
        if any(one.ended is not None and one.ended < row.due_at for one in bodies):
            return f"the run of {row.into} had ended"
        # It was claimed then; a pause, say, may have ended it since.
        known = [one for one in self.rows.get(row.task, []) if one.due_at == row.into and one.claims]
        return "" if known else f"there was no run of {row.into}"

    # -- those that were sent -----------------------------------------------------------------------------------------

    def _sent(self, task: str, reigns: Sequence[Reign], row: Row) -> Iterator[Finding]:
        came = [one for one in self.arrivals.get((task, row.due_at, 0), []) if one.message_id == row.message_id]
        if row.state in SENT and not came:
            yield Finding(Kind.UNRECEIVED, task, row.due_at)
        times = [one.at for one in came if one.at is not None] or ([row.sent_at] if row.sent_at else [])
        for at in [*times, *(one.seen for one in came if one.seen is not None)]:
            if at < row.due_at:
                yield Finding(Kind.EARLY, task, row.due_at, f"at {at}")
        if not times:
            return
        at = min(times)
        ruling = self._ruling(reigns, row.due_at, at)
        jitter = max(one.jitter for one in ruling)
        changed = max([one.settled for one in ruling if one.settled <= at], default=row.due_at)
        if at > self.faults.well(max(row.due_at, changed) + jitter, at) and all(one.missed != "all" for one in ruling):
            yield Finding(Kind.LATE, task, row.due_at, f"by {at - row.due_at}")
        # What was decided and checked in time may be written later by a process that stood still: promise 4 (b).
        if not self.faults.held_up((task, row.due_at, 0)):
            text = self._stale(ruling[0], row, at) if len(ruling) == 1 else ""
            if text := text or self._outdated(reigns, times):
                yield Finding(Kind.STALE, task, row.due_at, text)
        claimed = row.decided_at
        if claimed is not None and self.faults.hasty(claimed):
            yield Finding(Kind.HASTY, task, row.due_at, f"at {claimed}")

    def _outdated(self, reigns: Sequence[Reign], times: Sequence[datetime]) -> str:
        """Which change a message did not know that was there at its claim; empty when it may have known all."""
        known = self.history.terms.lease + self.history.terms.slack
        for at in times:
            ruling = self._ruling(reigns, at - known, at)
            for text, fits in _ENDS.items():
                if all(map(fits, ruling)):
                    return f"at {at} the task {text}"
        return ""

    def _stale(self, reign: Reign, row: Row, at: datetime) -> str:
        """Why a policy that held all the time did not want this sent; empty when it may have."""
        slack = self.history.terms.slack
        if reign.paused:
            return "the task was paused"
        if reign.grace is not None and at - row.due_at > reign.grace + reign.jitter + slack:
            return f"{at - row.due_at} late, beyond its grace"
        away = self.faults.surely_away(row.due_at)
        if away is None or at < away or row.claims > 1:
            return ""
        if reign.missed == "skip":
            return "missed, and the policy skips"
        if reign.missed == "latest" and not reign.one_off:
            later = bisect_right(reign.times, row.due_at)
            if later < len(reign.times) and reign.times[later] < away - slack - self.history.terms.away - reign.jitter:
                return f"missed, and {reign.times[later]} was missed as well"
        return ""

    def _one_at_a_time(self, task: str, reigns: Sequence[Reign], rows: Sequence[Row]) -> Iterator[Finding]:
        if self.history.executions is None or not all(one.overlap == "skip" for one in reigns):
            return
        open_until, holder = datetime.min.replace(tzinfo=self.history.began.tzinfo), None
        for row in rows:
            bodies = self.ran.get((task, row.due_at, 0), [])
            began = min(
                (one.at for one in self.arrivals.get((task, row.due_at, 0), []) if one.at is not None), default=None
            )
            if began is None or row.state not in SENT:
                continue
            if began < open_until:
                yield Finding(Kind.OVERLAPPED, task, row.due_at, f"the run of {holder} ended at {open_until}")
            ends = [one.ended or self.history.ended for one in bodies]
            if ends and max(ends) > open_until:
                open_until, holder = max(ends), row.due_at

    # -- messages and bodies ------------------------------------------------------------------------------------------

    def _messages(self) -> Iterator[Finding]:
        rows = {_key(row): row for row in self.history.ledger}
        owners: dict[str, Key] = {}
        copies = 0
        for key, came in self.arrivals.items():
            row = rows.get(key)
            explained = self.faults.explained(key, came, row)
            if row is None or (row.state not in SENT and not explained):
                text = "no row" if row is None else f"{row.state} {row.reason}".strip()
                yield Finding(Kind.UNRECORDED, *key[:2], f"{len(came)} messages, {text}")
            ids = {one.message_id for one in came}
            if len(ids) > 1 or (row is not None and row.message_id and ids != {row.message_id}):
                yield Finding(Kind.MIXED, *key[:2], f"{sorted(ids)}")
            for one in ids:
                if owners.setdefault(one, key) != key:
                    yield Finding(Kind.MIXED, *key[:2], f"{one} is the id of {owners[one]} as well")
            copies += len(came) - 1
            if len(came) - 1 > explained:
                senders = ", ".join(f"{one.scheduler} at {one.at}" for one in came)
                yield Finding(Kind.TWICE, *key[:2], f"{len(came)} messages, faults explain {explained}: {senders}")
        allowed = self.faults.copies()
        if copies > allowed:
            yield Finding(Kind.TWICE, "all tasks", None, f"{copies} copies, where faults explain {allowed}")

    def _bodies(self) -> Iterator[Finding]:
        if self.history.executions is None:
            return
        for key, bodies in self.ran.items():
            for attempt, count in Counter(one.attempt for one in bodies).items():
                if count > 1:
                    yield Finding(Kind.RAN_TWICE, *key[:2], f"attempt {attempt}: {count} times")
            if key not in self.arrivals:
                yield Finding(Kind.UNRECORDED, *key[:2], "a body ran without a message")
        for key in self.arrivals:
            if key not in self.ran:
                yield Finding(Kind.NOT_RUN, *key[:2], "the broker has had it")
        for row in self.history.ledger if self.history.reported else ():
            ended = [one.ended for one in self.ran.get(_key(row), []) if one.ended is not None]
            if ended and row.state not in ("succeeded", "failed"):
                yield Finding(Kind.FORGOTTEN, row.task, row.due_at, f"{row.state}, and a body ended at {max(ended)}")
