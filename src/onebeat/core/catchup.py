"""What happens to nominal times whose turn has come: send, or skip with a reason.

A time is *late* when its turn has passed but schedulers were at work, only busy: late times are sent, each of them. A
time is *missed* when no scheduler could have sent it at its turn (all down, broker or database away), or when it is
later than the grace or than the lateness that anybody would still call busy. The policy decides about missed times
only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from onebeat.core import nominal_times
from onebeat.core.reasons import Reason
from onebeat.core.recurrence import Recurrence

Missed = Literal["latest", "skip", "all"]
Overlap = Literal["allow", "skip"]

#: How many times of one task a single decision may send. The rest stays due, so that one task with a long backlog
#: leaves room for the others in every batch.
SEND_LIMIT = 100

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Policy:
    """A task's choices about what happens to its nominal times."""

    missed: Missed = "latest"
    #: Lateness beyond which a time is missed. None: however late, it is still worth one run.
    grace: timedelta | None = None
    #: Window in which the moment of sending is spread.
    jitter: timedelta = timedelta(0)
    #: Nothing is sent before this instant. `datetime.max` (UTC) means until somebody resumes.
    paused_until: datetime | None = None
    #: Whether a time whose turn comes while an earlier run is open is sent beside it.
    overlap: Overlap = "allow"
    #: A run that has been open for so long after it was sent no longer stands in the way.
    overlap_limit: timedelta = timedelta(hours=1)


DEFAULT = Policy()


@dataclass(frozen=True, slots=True)
class Skip:
    """Nominal times from `first` to `last` that are not sent, and why.

    `into`: the time that stands for them (coalesced), or whose run was still open (overlap). `why`: more, in words.
    """

    first: datetime
    last: datetime
    reason: Reason
    into: datetime | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A run of the task that is open: its nominal time, and until when it stands in the way of the next."""

    due_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on every nominal time up to now, and the next time to wait for (None: the task is finished)."""

    send: tuple[datetime, ...]
    skips: tuple[Skip, ...]
    due_at: datetime | None


@dataclass(slots=True)
class _Walk:
    """A walk over the nominal times of one task, from the oldest undecided one to now."""

    recurrence: Recurrence
    at: datetime | None
    expires: datetime | None
    send: list[datetime] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)

    def skip_before(self, end: datetime, reason: Reason, into: datetime | None = None, why: str = "") -> None:
        """Skip every undecided time strictly before `end`, as one range."""
        if self.at is None or self.at >= end:
            return
        last, following = nominal_times.newest(self.recurrence, self.at, end - _TICK)
        self.skips.append(Skip(self.at, last, reason, into, why))
        self.at = self._bounded(following)

    def step(self) -> None:
        """Send the undecided time and go on to the next."""
        assert self.at is not None
        self.send.append(self.at)
        self.at = nominal_times.following(self.recurrence, self.at, expires=self.expires)

    def newest_before(self, end: datetime) -> datetime:
        """The newest nominal time before `end`; the undecided one must be before it."""
        assert self.at is not None
        return nominal_times.newest(self.recurrence, self.at, end - _TICK)[0]

    def _bounded(self, instant: datetime | None) -> datetime | None:
        return None if instant is None or (self.expires and instant > self.expires) else instant


def decide(
    recurrence: Recurrence,
    due_at: datetime,
    now: datetime,
    policy: Policy = DEFAULT,
    *,
    missed_before: datetime,
    expires: datetime | None = None,
    one_off: bool = False,
    key: str = "",
    limit: int = SEND_LIMIT,
    running: Running | None = None,
) -> Decision:
    """Decide every nominal time from `due_at` to `now`.

    `running`: the run of an earlier time that is open, as far as is known; it counts under `overlap = skip` alone.
    `missed_before`: turns before this instant could not be kept by any scheduler; later ones are only late. `expires`
    is the last instant at which a nominal time may lie: a time that was missed is not made up for after it. `key` names
    the task for its jitter. At most `limit` times are sent; the rest stays due.
    """
    end = min(now, expires) if expires else now
    walk = _Walk(recurrence, due_at if expires is None or due_at <= expires else None, expires)
    if policy.paused_until is not None and policy.paused_until > due_at:
        walk.skip_before(min(policy.paused_until, end + _TICK), Reason.PAUSED)
    if policy.grace is not None:
        grace = f"later than the grace of {policy.grace.total_seconds():g} s"
        walk.skip_before(min(now - policy.grace, end + _TICK), Reason.MISSED, why=grace)
    missed_end = min(missed_before, end + _TICK)
    if walk.at is not None and walk.at < missed_end:
        if expires is not None and expires < now:
            walk.skip_before(missed_end, Reason.EXPIRED)
        elif policy.missed == "skip":
            walk.skip_before(missed_end, Reason.MISSED)
        elif policy.missed == "latest":
            newest = walk.newest_before(missed_end)
            walk.skip_before(newest, Reason.COALESCED, into=newest)
    one_at_a_time = policy.overlap == "skip"
    busy = running.due_at if one_at_a_time and running is not None and now < running.until else None
    while walk.at is not None and walk.at <= end and len(walk.send) < limit:
        if walk.at + wait(recurrence, walk.at, policy, key) > now:
            break
        if busy is not None:
            # Each leaves before the next nominal time, so of several only the newest may have to wait still.
            newest = walk.newest_before(end + _TICK)
            come = newest + wait(recurrence, newest, policy, key) <= now
            walk.skip_before(newest + _TICK if come else newest, Reason.OVERLAP, into=busy)
            continue
        busy = walk.at if one_at_a_time else None
        walk.step()
        if one_off:
            walk.at = None
    return Decision(tuple(walk.send), tuple(walk.skips), walk.at)


def wait(recurrence: Recurrence, due_at: datetime, policy: Policy, key: str) -> timedelta:
    """How long after `due_at` its occurrence leaves: zero, or the task's jitter, always before the next nominal
    time.
    """
    if not policy.jitter:
        return timedelta(0)
    return nominal_times.jitter(key, due_at, policy.jitter, nominal_times.following(recurrence, due_at))


def superseded(
    recurrence: Recurrence,
    due_at: datetime,
    now: datetime,
    policy: Policy,
    *,
    missed_before: datetime,
    expires: datetime | None = None,
    one_off: bool = False,
) -> Reason | None:
    """Why an occurrence that was claimed earlier and not sent should not be sent any more; None: it should.

    Asked again before anything is sent late or a second time: what was worth sending at its turn may have been
    overtaken.
    """
    if policy.paused_until is not None and policy.paused_until > now:
        return Reason.PAUSED
    if expires is not None and now > expires:
        return Reason.EXPIRED
    if policy.grace is not None and now - due_at > policy.grace:
        return Reason.MISSED
    if due_at < missed_before:
        if policy.missed == "skip":
            return Reason.MISSED
        following = None if one_off else recurrence.after(due_at)
        if policy.missed == "latest" and following is not None and following <= now:
            return Reason.COALESCED
    return None
