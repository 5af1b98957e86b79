"""One tick of one scheduler. Every scheduler is equal; none leads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from onebeat import signals
from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.dispatch.base import Accepted, Deferred, Dispatcher, Refused, Unsent
from onebeat.engine.heartbeat import Heartbeat
from onebeat.engine.housekeeping import Housekeeping
from onebeat.engine.messages import message
from onebeat.engine.run_count_buffer import RunCountBuffer
from onebeat.store import claims, events, other_beat, plans, recovery, settling, zone_data
from onebeat.store.claims import Batch, Terms
from onebeat.store.occurrences import Claimed
from onebeat.store.poll import Snapshot, snapshot

logger = logging.getLogger("onebeat")

#: How far behind the last complete look the claim's lower bound stays: room for a plan that commits late.
_FLOOR_MARGIN = timedelta(seconds=10)
#: How often the claim looks without a lower bound.
_FULL_LOOK = timedelta(seconds=60)
#: A tick stops taking new batches after this long and says that it wants to go on: whoever runs it stays responsive.
_TICK_SECONDS = 1.0

#: How long it sleeps when something was due and could not be claimed.
_SHORTEST = 0.02
#: How many messages go out one by one between two checks of the lease.
_PART = 50
#: So often, at least, what the broker took in a long batch is recorded within one lease.
_RECORDS_A_LEASE = 3
#: Until the end of a tick that has taken no longer, what its beginning saw is the present.
_FRESH_SECONDS = 0.002

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

#: How long an occurrence that the broker did not take waits while others are tried.
_AGAIN = timedelta(seconds=5)


def _nothing(point: str) -> None:
    """The default stop point: go on."""


class Engine:
    """A scheduler's work on one database.

    `at` is called with the name of each point between two steps: "claimed", "published", "settled". Tests stop there.
    `stopping` says whether somebody wants it to end; it is asked between any two flushes.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: Settings,
        *,
        using: str = "default",
        at: Callable[[str], None] = _nothing,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self.dispatcher = dispatcher
        self.settings = settings
        self.using = using
        self.at = at
        self.stopping = stopping
        self.presence = Heartbeat(using, timedelta(seconds=settings.away_seconds))
        self._watch = other_beat.ForeignWriteDetector()
        self._rivals = other_beat.OtherBeat(using, self._watch)
        self.owed = RunCountBuffer(using, settings, self._watch)
        self._housekeeping = Housekeeping(using, settings)
        self._zone_data = zone_data.ZoneData(using, settings.batch_size)
        #: The database's clock when this scheduler last asked for it.
        self._now = _EPOCH
        self._floor: datetime | None = None
        #: Wake times up to here have had their chance.
        self._claimed = _EPOCH
        self._looked: datetime | None = None
        self._recovered: datetime | None = None
        #: Occurrences taken and not yet settled, by claim: what a stop gives back.
        self._open: dict[int, set[int]] = {}
        #: Those of them that the broker has, by claim: still to be recorded.
        self._accepted: dict[int, list[Claimed]] = {}
        #: Whether something among what was given back may break the connection to the broker.
        self._suspicious = False
        #: Whether the broker answered at the last tick.
        self._answers = True
        #: How often each occurrence has failed here although the broker answered.
        self._failures: dict[int, int] = {}
        #: Since when every publish has failed although the broker answers.
        self._failing_since: datetime | None = None

    # -- the tick -----------------------------------------------------------------------------------------------------

    @signals.held()
    def tick(self) -> float:
        """Do what is due now. Returns the seconds until the next tick is worth making; 0 when more is waiting already.

        Raises the database's errors; a tick that failed can simply be made again.
        """
        self._record()
        self._give_back()
        ready = self.dispatcher.ready()
        # After the broker was asked, which may take seconds: able from now on.
        seen, begun = snapshot(self.using, self._floor), clock.monotonic()
        now = self._now = seen.now
        if not ready:
            self._failing_since = None
            self._failures.clear()
        if ready != self._answers:
            self._answers = ready
            logger.warning(
                "the broker is back" if ready else "the broker does not answer: nothing is claimed until it does"
            )
        held = self._rivals.step(now)
        # A time that passes while another beat sends is nobody's to be late with.
        self.presence.seen(now, ready and not held, self._failing_since, held=held)
        busy = seen.due or seen.changes
        if seen.changes:
            self._plan()
        more = ready and not held and self._work(seen, busy)
        # Nothing else waits while others' work is done: with something to do at once, that goes in small pieces.
        room = 0.0 if busy or more else self._room(seen)
        busy = self._keep_up(room) or busy
        if more and not self.stopping():
            return 0.0
        # What was seen at the beginning still holds if nothing was done since, nor took long.
        fresh = not busy and clock.monotonic() - begun < _FRESH_SECONDS
        return self._sleep(ready and not held, seen if fresh else None)

    def _plan(self) -> None:
        """Bring plans up to what changed: hints at once, anything else as the sweep comes past it."""
        deadline = clock.monotonic() + _TICK_SECONDS
        seen = False
        while plans.consume(self.using, self.settings.batch_size):
            seen = True
            if clock.monotonic() > deadline or self.stopping():
                break
        if seen:
            plans.touch(self.using)

    def _work(self, seen: Snapshot, busy: bool) -> bool:
        """Recover and claim batch by batch; claim if `busy`, and now and then to look without a lower bound. Returns
        whether more is waiting."""
        deadline = clock.monotonic() + _TICK_SECONDS
        terms, now = self._terms(), seen.now
        self._claimed = now
        if seen.by_hand:
            self._recovered = None
        left = False
        if self._recovered is None or now - self._recovered > terms.lease / 6:
            sent = self._recover(terms)
            if not sent and self.presence.refused:
                return False
            left = sent and self._recovered is None
        full = self._looked is None or now - self._looked > _FULL_LOOK
        if not (busy or full):
            self.presence.lag = timedelta(0)
            self._floor = now - _FLOOR_MARGIN
            return left
        while True:
            if self.stopping() or not self.dispatcher.ready():
                return False
            self.presence.still_at_work(self._failing_since)  # or has it stood still since the last batch?
            batch = claims.due(self.using, terms, None if full else self._floor)
            self._claimed = batch.now
            self.presence.lag = max(timedelta(0), batch.now - batch.oldest) if batch.oldest else timedelta(0)
            if not self._send(batch, self.settings.flush_size):
                return False
            if not batch.more:
                self._floor = batch.now - _FLOOR_MARGIN
                self._looked = now if full else self._looked
                return left
            if clock.monotonic() > deadline:
                return True

    def _recover(self, terms: Terms) -> bool:
        """Take up what a lost scheduler has left, or a lost batch. Returns False when it could not go on."""
        batch = recovery.reclaim(self.using, terms)
        lost = sum(one.claims > 1 for one in batch.occurrences)
        if lost:
            logger.warning("recovered %d occurrences of a lost scheduler", lost)
        self._recovered = None if batch.more else batch.now
        # After a batch was lost, or when a second scheduler ended with it, one by one and so in small parts: a message
        # that breaks the connection shows itself.
        singly = self._suspicious or any(one.claims > 2 for one in batch.occurrences)
        size = min(self.settings.flush_size, _PART) if singly else self.settings.flush_size
        sent = self._send(batch, size, singly=singly)
        if sent and not batch.more:
            self._suspicious = False
        return sent

    def _send(self, batch: Batch, size: int, *, singly: bool = False) -> bool:
        """Publish a batch in flushes of `size` and settle it in one statement. Returns False when it could not go on:
        the broker is away, or somebody wants it to end."""
        if not batch.occurrences:
            return True
        self._open[batch.token] = {one.id for one in batch.occurrences}
        self.at("claimed")
        accepted = self._accepted.setdefault(batch.token, [])
        whole, begun, long = True, clock.monotonic(), self.settings.lease_seconds / _RECORDS_A_LEASE
        for start in range(0, len(batch.occurrences), size):
            if accepted and clock.monotonic() - begun > long:
                # A broker so slow that the lease may end on the way: what it has by then must not be sent again.
                self._record()
                accepted, begun = self._accepted.setdefault(batch.token, []), clock.monotonic()
            part = batch.occurrences[start : start + size]
            if self.stopping() or not self._flush(batch, part, accepted, singly):
                whole = False
                break
        self.at("published")
        self._record()
        self.at("settled")
        self._give_back()
        return whole

    def _record(self) -> None:
        """Settle what the broker has: in the same tick, or in the next when the database failed just then."""
        for token, accepted in list(self._accepted.items()):
            if accepted:
                settling.sent(self.using, token, [one.id for one in accepted])
                self._settled(token, accepted)
                self.owed.add(accepted, self._now)  # near enough for the old columns, and no question of its own
                settling.tell(self.using, accepted)
            self._accepted.pop(token, None)

    def _flush(self, batch: Batch, part: Sequence[Claimed], accepted: list[Claimed], singly: bool) -> bool:
        """Publish what is still ours of a part of a batch. Returns False when the broker is away.

        A broker that takes some of them is not away: what it does not take waits a while and lets the others pass.
        """
        self._now = max(self._now, batch.now)
        self.presence.still_at_work(self._failing_since)
        mine = settling.still_mine(self.using, batch.token, [one.id for one in part])
        ours = [one for one in part if one.id in mine]
        self._settled(batch.token, [one for one in part if one.id not in mine])
        outcomes = self.dispatcher.publish([message(one, batch.now) for one in ours], singly=singly)
        for one, outcome in zip(ours, outcomes, strict=True):
            match outcome:
                case Accepted():
                    accepted.append(one)
                    self._failing_since = None
                    self._failures.pop(one.id, None)
                case Refused(reason):
                    self.presence.failed += 1
                    logger.error("task %r was refused: %s", one.task.name, reason)
                    settling.refused(self.using, batch.token, one.id, reason)
                    events.skipped(self.using, one.task.id, one.task.name, one.due_at, "refused", reason, run=one.run)
                    self._settled(batch.token, [one])
                case Deferred(reason):
                    logger.warning("task %r has to wait: %s", one.task.name, reason)
                    self._postpone(batch, one)
                case Unsent(reason, alone):
                    if alone:
                        self.presence.failed += 1
                        logger.warning("task %r was not sent: %s", one.task.name, reason)
                        self._failures[one.id] = self._failures.get(one.id, 0) + 1
                    if self._failures.get(one.id, 0) > 1:
                        self._postpone(batch, one)  # it may be to blame: others go first for a while
        if outcomes and isinstance(outcomes[-1], Unsent):
            self._suspicious = True
            if not any(isinstance(outcome, Accepted) for outcome in outcomes):
                if self._failing_since is None:
                    logger.warning("the broker takes nothing: %s", outcomes[-1].reason)
                self._failing_since = self._failing_since or batch.now
            return False
        return True

    def _postpone(self, batch: Batch, one: Claimed) -> None:
        settling.postpone(self.using, batch.token, one.id, batch.now + _AGAIN)
        self._settled(batch.token, [one])

    # -- leaving things in order ----------------------------------------------------------------------------------

    def _settled(self, token: int, done: Sequence[Claimed]) -> None:
        left = self._open.get(token, set())
        left.difference_update(one.id for one in done)
        if not left:
            self._open.pop(token, None)

    def _give_back(self) -> None:
        """Let go of what was claimed and not sent, so that any scheduler may take it as soon as it can."""
        for token, ids in list(self._open.items()):
            settling.release(self.using, token, ids)
            self._open.pop(token, None)
            self._recovered = None

    def _keep_up(self, room: float) -> bool:
        """What readers of the old columns expect, and changes that came past the ORM: late, and in pieces that end
        when `room` seconds are over. Returns whether a plan may have moved.
        """
        self.owed.step(room)
        moved = self._housekeeping.step(self.presence.beat, room)
        return self._zone_data.step() or moved

    def close(self) -> None:
        """Give back what is claimed, write what is owed, and say that this scheduler has stopped. May be called
        twice.
        """
        self._record()
        self._give_back()
        self.owed.close()
        self._housekeeping.close()
        self._rivals.close()
        self.presence.stop()
        self.dispatcher.close()

    # -- sums -----------------------------------------------------------------------------------------------------

    def _terms(self) -> Terms:
        return Terms(
            beat=self.presence.beat,
            lease=timedelta(seconds=self.settings.lease_seconds),
            limit=self.settings.batch_size,
            missed_before=lambda now: self.presence.missed_before(now, timedelta(seconds=self.settings.late_seconds)),
        )

    def _room(self, seen: Snapshot) -> float:
        """Seconds until somebody's turn comes, as far as is known."""
        poll = self.settings.poll_interval
        return poll if seen.wake_at is None else min(poll, max(0.0, (seen.wake_at - seen.now).total_seconds()))

    def _sleep(self, ready: bool, seen: Snapshot | None) -> float:
        poll = self.settings.poll_interval
        if not ready or self.presence.refused:
            return poll  # what is due stays so while the broker takes nothing: no reason to try again at once
        seen = seen or snapshot(self.using, self._floor)
        self.presence.rests(seen.now)
        if seen.wake_at is not None and seen.wake_at <= min(seen.now, self._claimed):
            return min(poll, _SHORTEST)  # locked by another scheduler
        return self._room(seen)
