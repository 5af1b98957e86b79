"""One tick of one scheduler: plan, claim, publish, settle, recover. Every scheduler is equal; none leads."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from onebeat import signals
from onebeat.core import clock
from onebeat.core.planning import LATE_COMMITS
from onebeat.engine.assembly import Assembly
from onebeat.engine.heartbeat import Heartbeat
from onebeat.engine.housekeeping import Housekeeping
from onebeat.engine.publishing import Publisher
from onebeat.engine.run_count_buffer import RunCountBuffer
from onebeat.store import claims, other_beat, plans, poll, recovery, zone_data
from onebeat.store.claims import Terms
from onebeat.store.poll import Snapshot

logger = logging.getLogger("onebeat")

#: How often the claim looks without a lower bound.
_FULL_LOOK = timedelta(seconds=60)
#: A tick takes no new batch after this long and says that it wants to go on: whoever runs it stays responsive.
_TICK_SECONDS = 1.0
#: How long a scheduler sleeps when something was due and another had it locked.
_SHORTEST = 0.02
#: If a tick took no longer than this, what it saw at its beginning is still the present.
_FRESH_SECONDS = 0.002


class Engine:
    """A scheduler's work on one database."""

    def __init__(self, assembly: Assembly) -> None:
        self.parts = assembly
        using, settings = assembly.using, assembly.settings
        self.heartbeat = Heartbeat(using, timedelta(seconds=settings.away_seconds))
        detector = other_beat.ForeignWriteDetector()
        self._other_beat = other_beat.OtherBeat(using, detector)
        self.run_counts = RunCountBuffer(using, settings, detector)
        self._publisher = Publisher(assembly, self.heartbeat, self.run_counts)
        self._housekeeping = Housekeeping(using, settings)
        self._zone_data = zone_data.ZoneData(using, settings.batch_size)
        #: The claim looks at wake times from here on; None: at all of them.
        self._wake_lower_bound: datetime | None = None
        self._last_full_look: datetime | None = None
        #: When lost occurrences were looked for last; None: look at once.
        self._last_recovery: datetime | None = None
        self._broker_answered = True

    @signals.deferred()
    def tick(self) -> float:
        """Do what is due now. Returns the seconds until the next tick is worth making; 0 when more is waiting already.

        Raises the database's errors; a tick that failed can simply be made again.
        """
        self._finish_last_tick()
        ready = self.parts.dispatcher.ready()
        # After the broker was asked, which may take seconds: able to send from now on.
        snapshot, begun = poll.snapshot(self.parts.using, self._wake_lower_bound), clock.monotonic()
        now = snapshot.now
        self._note_broker(ready)
        standby = self._other_beat.step(now)
        # A time that passes while another beat sends is nobody's to be late with.
        self.heartbeat.tick_begins(now, ready, self._publisher.failing_since, standby=standby)
        busy = snapshot.due or snapshot.changes
        if snapshot.changes:
            self._plan()
        looked_at = now
        more = False
        if ready and not standby:
            more, looked_at = self._work(snapshot, busy)
        # Housekeeping is done in small pieces while messages wait.
        budget_seconds = 0.0 if busy or more else self._seconds_to_wake(snapshot)
        busy = self._housekeeping_step(budget_seconds) or busy
        if more and not self.parts.stopping():
            return 0.0
        # The snapshot still holds if nothing was done since, nor took long.
        fresh = not busy and clock.monotonic() - begun < _FRESH_SECONDS
        return self._sleep(ready and not standby, snapshot if fresh else None, looked_at)

    def close(self) -> None:
        """Give back what is claimed, write what is buffered, and say that this scheduler has stopped. May be called
        twice.
        """
        self._finish_last_tick()
        self.run_counts.close()
        self._housekeeping.close()
        self._other_beat.close()
        self.heartbeat.stop()
        self.parts.dispatcher.close()

    def _finish_last_tick(self) -> None:
        """Record and give back what the last tick left behind when the database failed."""
        self._publisher.record()
        if self._publisher.give_back():
            self._last_recovery = None

    def _note_broker(self, ready: bool) -> None:
        if not ready:
            self._publisher.broker_away()
        if ready != self._broker_answered:
            self._broker_answered = ready
            logger.warning(
                "the broker is back" if ready else "the broker does not answer: nothing is claimed until it does"
            )

    def _plan(self) -> None:
        """Bring plans up to what changed: hints at once, anything else as the sweep comes past it."""
        deadline = clock.monotonic() + _TICK_SECONDS
        planned = False
        while plans.consume(self.parts.using, self.parts.settings.batch_size):
            planned = True
            if clock.monotonic() > deadline or self.parts.stopping():
                break
        if planned:
            plans.touch(self.parts.using)

    def _work(self, snapshot: Snapshot, busy: bool) -> tuple[bool, datetime]:
        """Recover and claim batch by batch; claim if `busy`, and now and then to look without a lower bound.

        Returns whether more is waiting, and up to which wake time everything has had its chance.
        """
        deadline = clock.monotonic() + _TICK_SECONDS
        terms, now = self._terms(), snapshot.now
        more_lost = False
        if snapshot.waiting or self._last_recovery is None or now - self._last_recovery > terms.lease / 6:
            recovered = self._recover(terms)
            if not recovered and self.heartbeat.broker_takes_nothing:
                return False, now
            more_lost = recovered and self._last_recovery is None
        full = self._last_full_look is None or now - self._last_full_look > _FULL_LOOK
        if not (busy or full):
            self.heartbeat.lag = timedelta(0)
            self._wake_lower_bound = now - LATE_COMMITS
            return more_lost, now
        while True:
            if self.parts.stopping() or not self.parts.dispatcher.ready():
                return False, now
            self.heartbeat.report_if_due(self._publisher.failing_since)  # it may have stood still since the last batch
            lower_bound = None if full else self._wake_lower_bound
            batch = claims.due(self.parts.using, terms, lower_bound, self._publisher.settled)
            self._publisher.settled.clear()
            now = batch.now
            self.heartbeat.lag = max(timedelta(0), now - batch.oldest) if batch.oldest else timedelta(0)
            if not self._publisher.send(batch):
                self._last_recovery = None
                return False, now
            if not batch.more:
                self._wake_lower_bound = now - LATE_COMMITS
                self._last_full_look = snapshot.now if full else self._last_full_look
                return more_lost, now
            if clock.monotonic() > deadline:
                return True, now

    def _recover(self, terms: Terms) -> bool:
        """Take up what a lost scheduler has left, or a lost batch. Returns False when it could not go on."""
        batch = recovery.reclaim(self.parts.using, terms)
        lost = sum(claimed.claims > 1 for claimed in batch.occurrences)
        if lost:
            logger.warning("recovered %d occurrences of a lost scheduler", lost)
        sent = self._publisher.send(batch, recovered=True)
        self._last_recovery = batch.now if sent and not batch.more else None
        return sent

    def _housekeeping_step(self, budget_seconds: float) -> bool:
        """Do what readers of the old columns expect, and look for changes that came past the ORM: late, in pieces that
        end when `budget_seconds` are over. Returns whether a plan may have moved.
        """
        self.run_counts.step(budget_seconds)
        moved = self._housekeeping.step(self.heartbeat.row, budget_seconds)
        return self._zone_data.step() or moved

    def _terms(self) -> Terms:
        settings = self.parts.settings
        return Terms(
            beat=self.heartbeat.row,
            lease=timedelta(seconds=settings.lease_seconds),
            limit=settings.batch_size,
            missed_before=lambda now: self.heartbeat.missed_before(now, timedelta(seconds=settings.late_seconds)),
        )

    def _seconds_to_wake(self, snapshot: Snapshot) -> float:
        """Seconds until the next wake time, as far as is known."""
        longest = self.parts.settings.poll_interval
        if snapshot.wake_at is None:
            return longest
        return min(longest, max(0.0, (snapshot.wake_at - snapshot.now).total_seconds()))

    def _sleep(self, able: bool, snapshot: Snapshot | None, looked_at: datetime) -> float:
        longest = self.parts.settings.poll_interval
        if not able or self.heartbeat.broker_takes_nothing:
            return longest  # what is due stays so while the broker takes nothing: no reason to try again at once
        snapshot = snapshot or poll.snapshot(self.parts.using, self._wake_lower_bound)
        self.heartbeat.tick_ended(snapshot.now)
        if snapshot.wake_at is not None and snapshot.wake_at <= min(snapshot.now, looked_at):
            return min(longest, _SHORTEST)  # locked by another scheduler
        return self._seconds_to_wake(snapshot)
