"""What was wanted, what went wrong, and what was seen in a run: plain facts for `tests.proof.checker`.

Nothing here comes from the engine. Whoever makes a history says which instants a rule names, by its own reckoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

NOTHING = timedelta(0)


class Trouble(StrEnum):
    """A kind of fault. All but two may lead to a second copy (promise 4); the comment says which half of it."""

    CRASH = "crash"  # a process ended without a word: (a)
    DATABASE = "database"  # a statement failed, or its connection was lost: (a)
    COMMIT = "commit"  # it went through and the reply was lost: (a)
    BROKER = "broker"  # it does not answer, or was lost in the middle of a message: (a)
    SUSPEND = "suspend"  # a process stood still: (b)
    STOPPED = "stopped"  # it was not there, and had left in good order
    REFUSAL = "refusal"  # the broker did not take single messages, and said so


COPYING = frozenset(Trouble) - {Trouble.STOPPED, Trouble.REFUSAL}
#: Task, nominal time and run: what names an occurrence.
Key = tuple[str, datetime, int]


@dataclass(frozen=True)
class Fault:
    """Something that went wrong, or was switched off, between two instants of the database's clock."""

    kind: Trouble
    began: datetime
    ended: datetime
    #: Whose; empty: everybody's.
    scheduler: str = ""
    #: Whether the scheduler could still do its work, with a step repeated.
    brief: bool = False
    #: The occurrences that it may make another copy of (promise 4): their messages were with the broker and not
    #: recorded, or, when a process stood still, about to be written. None: not known; then they are a batch at most.
    copies: frozenset[Key] | None = None
    #: Whose messages were refused; empty: anybody's.
    task: str = ""
    #: That the broker does not answer was known all the time, so that nothing may be claimed.
    known: bool = False


@dataclass(frozen=True)
class Reign:
    """One definition of a task while it was in force: until the next one's `begins`, or the end."""

    #: The instants that the rule names, ascending, as far as the history goes.
    times: tuple[datetime, ...]
    #: The change that brought it was made between these two.
    begins: datetime
    settled: datetime
    #: Whether that change makes the schedule begin anew; a policy does not, nor does a pause.
    rebased: bool = True
    enabled: bool = True
    one_off: bool = False
    #: One instant that somebody has named: theirs to run even if it has passed by then.
    named: bool = False
    missed: Literal["latest", "skip", "all"] = "latest"
    grace: timedelta | None = None
    jitter: timedelta = NOTHING
    overlap: Literal["allow", "skip"] = "allow"
    paused: bool = False
    expires: datetime | None = None
    #: The row cannot be sent as it is: it is to be quarantined.
    broken: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Row:
    """An occurrence in the ledger."""

    task: str
    due_at: datetime
    state: str
    reason: str = ""
    through: datetime | None = None
    into: datetime | None = None
    message_id: str = ""
    decided_at: datetime | None = None
    sent_at: datetime | None = None
    #: How often it was claimed, 1 at least if it ever was. A skipped one that was claimed has been decided again, later
    #: than `decided_at`.
    claims: int = 0
    run: int = 0

    @property
    def last(self) -> datetime:
        return self.through or self.due_at


@dataclass(frozen=True)
class Arrival:
    """A message that the broker got, whatever it did with it afterwards."""

    task: str
    due_at: datetime
    message_id: str
    #: When and from whom, where that is known.
    at: datetime | None = None
    scheduler: str = ""
    run: int = 0
    #: By when it had come, where only that is known: when a worker got it.
    seen: datetime | None = None


@dataclass(frozen=True)
class Execution:
    """A body that ran."""

    task: str
    due_at: datetime
    began: datetime | None = None
    ended: datetime | None = None
    attempt: int = 0
    run: int = 0


@dataclass(frozen=True)
class Terms:
    """What the schedulers were set to."""

    batch: int = 500
    lease: timedelta = timedelta(seconds=30)
    away: timedelta = timedelta(seconds=8)
    late: timedelta = timedelta(seconds=60)
    #: How long after its time a message may come when nothing is wrong, and how long a trouble may take to show.
    slack: timedelta = timedelta(seconds=3)


@dataclass(frozen=True)
class History:
    """One run. It ends quietly: every fault is over for longer than the lease before `ended`."""

    tasks: Mapping[str, Sequence[Reign]]
    began: datetime
    ended: datetime
    ledger: Sequence[Row] = ()
    arrivals: Sequence[Arrival] = ()
    faults: Sequence[Fault] = ()
    #: None: nobody ran the tasks, or they were not guarded.
    executions: Sequence[Execution] | None = None
    #: The schedulers that were to be at work from `began` to `ended`.
    schedulers: Sequence[str] = ("",)
    terms: Terms = field(default_factory=Terms)
    #: Whether workers could always tell the ledger how a body ended.
    reported: bool = False


class Kind(StrEnum):
    """What is wrong with a history. The number is the promise of DESIGN.md, section 2, that does not hold."""

    LOST = "lost"  # 4, 6: a nominal time without a row that says what became of it
    UNSENT = "left claimed"  # 4
    UNRECEIVED = "never arrived"  # 4: the ledger calls it sent
    LATE = "late without a fault"  # 4: later than the lease after everything was well
    UNRECORDED = "not in the ledger"  # 2, 6: the broker has it, the ledger does not call it sent
    UNSCHEDULED = "not on the schedule"  # 9: no definition in force names it
    EARLY = "early"
    TWICE = "sent twice"  # 4: and no fault explains it
    MIXED = "wrong id"  # 3
    CONTRADICTION = "two verdicts"  # 2, 6: one nominal time, sent and skipped
    UNREASONED = "skipped without cause"  # 6: the recorded reason is not what happened
    STALE = "sent against its policy"
    HASTY = "claimed while the broker was away"  # section 5: policy decides afterwards
    OVERLAPPED = "sent beside an open run"
    RAN_TWICE = "run twice"  # 5
    NOT_RUN = "not run"
    FORGOTTEN = "outcome not kept"  # a body ended, and the ledger does not say so


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    task: str
    due_at: datetime | None
    text: str = ""

    def __str__(self) -> str:
        when = "" if self.due_at is None else f" at {self.due_at.isoformat(timespec='microseconds')}"
        return f"{self.kind}: {self.task}{when}{': ' if self.text else ''}{self.text}"
