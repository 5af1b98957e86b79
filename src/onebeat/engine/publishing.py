"""Publish a claimed batch and settle it.

What the broker takes is recorded; what it does not take waits or is given back.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from onebeat.core import clock
from onebeat.core.backoff import retry_delay
from onebeat.core.reasons import Reason
from onebeat.db import database_clock
from onebeat.dispatch.base import Accepted, Deferred, Failed, PublishResult, Refused, Unsent
from onebeat.engine.assembly import Assembly
from onebeat.engine.heartbeat import Heartbeat
from onebeat.engine.in_flight import InFlight
from onebeat.engine.messages import message
from onebeat.engine.run_count_buffer import RunCountBuffer
from onebeat.store import batches, events, settling
from onebeat.store.claims import Batch
from onebeat.store.occurrences import Claimed

logger = logging.getLogger("onebeat")

#: How many messages go out one by one between two checks of the lease.
_PART = 50
#: What the broker took of a long batch is recorded at least so often within one lease.
_RECORDS_A_LEASE = 3
#: How long an occurrence waits whose queue was full, while others are tried.
_QUEUE_FULL = timedelta(seconds=5)
#: How long at most one waits that the broker did not take although it answers.
_BROKER = timedelta(seconds=5)
#: After so many failures of its own code a message is given up: with the back-off that is about an hour. What a broker
#: does not take is never given up.
_MOST_FAILURES = 65


class Publisher:
    """Takes batches to the broker. What the database could not record is kept and recorded at the next call."""

    def __init__(self, assembly: Assembly, heartbeat: Heartbeat, run_counts: RunCountBuffer) -> None:
        self._parts = assembly
        self._heartbeat = heartbeat
        self._run_counts = run_counts
        self._in_flight = InFlight()
        #: Whether a batch was lost, so that a message among what was given back may break the connection.
        self._suspicious = False
        #: Since when every publish has failed although the broker answers; None while some succeed.
        self.failing_since: datetime | None = None

    def send(self, batch: Batch, *, recovered: bool = False) -> bool:
        """Publish a batch in flushes and record it. Returns False when it could not go on: the broker is away, or
        somebody wants the scheduler to end.

        `recovered`: the occurrences were claimed before. After a batch was lost, or when a second scheduler ended with
        one of them, they go one by one and so in small parts: a message that breaks the connection shows itself.
        """
        if not batch.occurrences:
            return True
        singly = recovered and (self._suspicious or any(claimed.claims > 2 for claimed in batch.occurrences))
        size = min(self._parts.settings.flush_size, _PART) if singly else self._parts.settings.flush_size
        self._in_flight.add(batch)
        self._parts.at("claimed")
        sent = self._flushes(batch, size, singly)
        self._parts.at("published")
        self.record()
        self._parts.at("settled")
        self.give_back()
        if sent and recovered and not batch.more:
            self._suspicious = False
        return sent

    def record(self) -> None:
        """Settle what the broker has: in the same tick, or in the next when the database failed just then."""
        for token, now, accepted in self._in_flight.unrecorded():
            settling.sent(self._parts.using, token, [claimed.id for claimed in accepted])
            self._in_flight.settle(token, accepted)
            self._run_counts.add(accepted, now)
            settling.emit_sent(self._parts.using, accepted)

    def give_back(self) -> bool:
        """Release what was claimed and not sent, so that any scheduler may take it at once. Returns whether there was
        any.
        """
        gave = False
        for token in self._in_flight.unsent():
            batches.give_back(self._parts.using, token)
            gave = True
        return gave

    @property
    def settled(self) -> set[int]:
        """The tokens of batches that are done with, until somebody has removed them."""
        return self._in_flight.settled

    def broker_away(self) -> None:
        """The broker does not answer at all: what failed before says nothing about a single message."""
        self.failing_since = None

    def _flushes(self, batch: Batch, size: int, singly: bool) -> bool:
        begun, longest = clock.monotonic(), self._parts.settings.lease_seconds / _RECORDS_A_LEASE
        for start in range(0, len(batch.occurrences), size):
            if clock.monotonic() - begun > longest:
                # A broker so slow that the lease may end on the way: what it has by then must not be sent again.
                self.record()
                batches.extend(self._parts.using, batch.token, timedelta(seconds=self._parts.settings.lease_seconds))
                begun = clock.monotonic()
            if self._parts.stopping() or not self._flush(batch, batch.occurrences[start : start + size], singly):
                return False
        return True

    def _flush(self, batch: Batch, part: Sequence[Claimed], singly: bool) -> bool:
        """Publish what is still ours of a part of a batch. Returns False when the broker is away.

        A broker that takes some of them is not away: what it does not take waits a while and lets the others pass.
        """
        self._heartbeat.report_if_due(self.failing_since)
        mine = settling.still_mine(self._parts.using, batch.token, [claimed.id for claimed in part])
        ours = [claimed for claimed in part if claimed.id in mine]
        self._in_flight.settle(batch.token, [claimed for claimed in part if claimed.id not in mine])
        results = self._parts.dispatcher.publish([message(claimed, batch.now) for claimed in ours], singly=singly)
        answered = list(zip(ours, results, strict=True))
        # What the broker has is noted before anything that may fail: else the rest would be sent again.
        for claimed, result in answered:
            if isinstance(result, Accepted):
                self._in_flight.accept(batch, claimed)
                self.failing_since = None
        for claimed, result in answered:
            self._take(batch, claimed, result)
        # A message that failed alone while later ones were tried is at fault itself; else the connection is.
        unsent = [result for result in results if isinstance(result, Unsent)]
        broken = [result for result in unsent if not result.alone or result is results[-1]]
        if not broken:
            return True
        self._suspicious = True
        if self.failing_since is None and not any(isinstance(result, Accepted) for result in results):
            logger.warning("the broker takes nothing: %s", broken[-1].reason)
            self.failing_since = batch.now
        return False

    def _take(self, batch: Batch, claimed: Claimed, result: PublishResult) -> None:
        """Act on what the dispatcher says of a message that the broker does not have."""
        name = claimed.task.name
        match result:
            case Refused(reason):
                logger.error("task %r was refused: %s", name, reason)
                self._refuse(batch, claimed, reason)
            case Deferred(reason):
                logger.warning("task %r has to wait: %s", name, reason)
                self._postpone(batch, claimed, _QUEUE_FULL)
            case Failed(reason) if claimed.failures >= _MOST_FAILURES:
                logger.error("task %r is given up: %s", name, reason)
                self._refuse(batch, claimed, f"given up after {claimed.failures} tries: {reason}")
            case Failed(reason) | Unsent(reason, alone=True):
                # It may be to blame: others go first for a while.
                self._heartbeat.failed += 1
                logger.warning("task %r was not sent and is tried again: %s", name, reason)
                delay = retry_delay(claimed.failures)
                self._postpone(batch, claimed, delay if isinstance(result, Failed) else min(delay, _BROKER), reason)

    def _refuse(self, batch: Batch, claimed: Claimed, reason: str) -> None:
        self._heartbeat.failed += 1
        if settling.refused(self._parts.using, batch.token, claimed.id, reason):
            events.skipped(
                self._parts.using, claimed.task.id, claimed.task.name, claimed.due_at, Reason.REFUSED, reason,
                run=claimed.run,
            )  # fmt: skip
        self._in_flight.settle(batch.token, [claimed])

    def _postpone(self, batch: Batch, claimed: Claimed, delay: timedelta, failure: str = "") -> None:
        # From now, and not from the claim: a batch may take longer than the delay.
        until = database_clock.now(self._parts.using) + delay
        settling.postpone(self._parts.using, batch.token, claimed.id, until, failure)
        self._in_flight.settle(batch.token, [claimed])
