"""What the faults of a history explain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tests.proof.history import COPYING, NOTHING, Arrival, Fault, History, Key, Row, Trouble


class Faults:
    """Questions to the faults of one history; all answers allow for the slack in which a trouble shows."""

    def __init__(self, history: History) -> None:
        self.terms = history.terms
        self.ended = history.ended
        self.schedulers = history.schedulers
        self.all = sorted(history.faults, key=lambda fault: fault.began)
        self._nobody = self._everybody_unable(widen=True)
        self._surely = [
            (began, ended)
            for began, ended in self._everybody_unable(widen=False)
            if ended - began > self.terms.away + 2 * self.terms.slack
        ]

    def nobody(self, begin: datetime, end: datetime) -> bool:
        """Whether, at some moment between, perhaps no scheduler was able to send."""
        return any(began <= end and ended >= begin for began, ended in self._nobody)

    def unseen(self, begin: datetime, end: datetime) -> bool:
        """Whether perhaps no scheduler has looked between two instants: it takes a moment, and one that is able."""
        begin += self.terms.slack
        return end <= begin or any(began <= begin and ended >= end for began, ended in self._nobody)

    def surely_away(self, instant: datetime) -> datetime | None:
        """If at this instant no scheduler can have been able to send, and for long: until when that lasted."""
        # Nobody is away before it has lasted, and what is a little late stays late.
        first, last = self.terms.slack, self.terms.slack + self.terms.away
        return next((ended for began, ended in self._surely if began + first < instant < ended - last), None)

    def explained(self, key: Key, came: Sequence[Arrival], row: Row | None) -> int:
        """How many second copies of one occurrence the troubles of its senders explain (promise 4): one each."""
        return sum(
            self._senders(fault) * (key in fault.copies if fault.copies is not None else self._near(fault, came, row))
            for fault in self.all
            if fault.kind in COPYING
        )

    def _senders(self, fault: Fault) -> int:
        """How many schedulers had this trouble, each with messages of its own."""
        return 1 if fault.scheduler or fault.copies is not None else len(self.schedulers)

    def _near(self, fault: Fault, came: Sequence[Arrival], row: Row | None) -> bool:
        """Whether one of these was sent while its scheduler had this trouble.

        Where it is not known when it was sent: whether the trouble fell between claim and record, as no other can have
        made anybody send it again.
        """
        first, last = fault.began - self.terms.slack, fault.ended + self.terms.slack
        begun = row.decided_at if row and row.decided_at else self.ended
        settled = row.sent_at if row and row.sent_at else self.ended
        return any(
            (not fault.scheduler or not one.scheduler or fault.scheduler == one.scheduler)
            and (begun <= last and settled >= first if one.at is None else first <= one.at <= last)
            for one in came
        )

    def copies(self) -> int:
        """How many second copies all faults together may make: a batch at most, of each scheduler that had them."""
        return sum(
            min(self.terms.batch, self.terms.batch if fault.copies is None else len(fault.copies))
            * self._senders(fault)
            for fault in self.all
            if fault.kind in COPYING
        )

    def held_up(self, key: Key) -> bool:
        """Whether a scheduler may have written this message long after it looked at its lease."""
        return any(
            fault.kind == Trouble.SUSPEND and (fault.copies is None or key in fault.copies) for fault in self.all
        )

    def refused(self, task: str, begin: datetime, end: datetime) -> bool:
        """Whether the broker refused a message of this task between two instants."""
        return any(
            fault.kind == Trouble.REFUSAL and fault.task in ("", task) and fault.began <= end and fault.ended >= begin
            for fault in self.all
        )

    def hasty(self, claimed: datetime) -> bool:
        """Whether at this instant everybody knew that the broker was away."""
        return any(fault.known and fault.began < claimed < fault.ended for fault in self.all)

    def well(self, begin: datetime, end: datetime) -> datetime:
        """By when a message that could leave at `begin` must have left, given what went wrong until `end`.

        After the last trouble: when the lease of whoever held it has ended, and what was held up has been worked off.
        """
        limit = begin + self.terms.slack
        for fault in self.all:
            if fault.began <= end and fault.ended >= begin - self.terms.lease:
                limit = max(limit, fault.ended + self.terms.lease + 3 * self.terms.slack)
        return limit

    def _everybody_unable(self, *, widen: bool) -> list[tuple[datetime, datetime]]:
        """The stretches in which each scheduler was unable to send, as far as the faults tell; ascending."""
        wide = self.terms.slack if widen else NOTHING
        found: list[tuple[datetime, datetime]] | None = None
        for scheduler in self.schedulers:
            own = [
                (fault.began - wide, fault.ended + wide)
                for fault in self.all
                if not fault.brief and fault.kind != Trouble.REFUSAL and fault.scheduler in ("", scheduler)
            ]
            found = own if found is None else _both(found, own)
        return _joined(found or [])


def _joined(spans: list[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    joined: list[tuple[datetime, datetime]] = []
    for began, ended in sorted(spans):
        if joined and began <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], ended)
        else:
            joined.append((began, ended))
    return joined


def _both(
    one: list[tuple[datetime, datetime]], other: list[tuple[datetime, datetime]]
) -> list[tuple[datetime, datetime]]:
    pairs = ((max(a, c), min(b, d)) for a, b in _joined(one) for c, d in _joined(other))
    return [(began, ended) for began, ended in pairs if began <= ended]
