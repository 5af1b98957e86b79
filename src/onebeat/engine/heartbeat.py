"""This scheduler's row among the schedulers, and since when any of them has been able to send.

That tells a missed time, which nobody could have sent, from one that is only late.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from onebeat.core import clock
from onebeat.db import database_clock
from onebeat.models import Beat
from onebeat.store import events, outages, scheduler_rows

logger = logging.getLogger("onebeat")

#: How often a scheduler reports that it is at work.
_REPORT = timedelta(seconds=2)


class Heartbeat:
    """Reports that a scheduler is at work and whether it can send."""

    def __init__(self, using: str, unavailable_after: timedelta) -> None:
        """`unavailable_after`: a scheduler that was not seen for so long, or whose broker took nothing for so long,
        counts as unable to send.
        """
        self.using = using
        self.unavailable_after = unavailable_after
        #: How late the oldest due task was at the last claim.
        self.lag = timedelta(0)
        #: The broker answers and takes nothing, and has done so for longer than `unavailable_after`.
        self.broker_takes_nothing = False
        #: How many messages could not be handed over since the process started, each try counted.
        self.failed = 0
        self._counted_before = events.counted_since(using, {})
        self._standby = False
        self._row: int | None = None
        self._able_since: datetime | None = None
        self._unable_reason = ""
        self._any_able_since: datetime | None = None
        self._last_tick: datetime | None = None
        self._reported: datetime | None = None
        self._reported_monotonic = clock.monotonic()

    @property
    def row(self) -> int:
        """The key of this scheduler's row, which is made when it is first needed."""
        if self._row is None:
            self._row = scheduler_rows.register(self.using)
        return self._row

    def tick_begins(
        self, now: datetime, broker_answers: bool, failing_since: datetime | None = None, *, standby: bool = False
    ) -> None:
        """Note at the beginning of a tick whether this scheduler can send, and report it when that is due.

        A gap between ticks longer than `unavailable_after` ends `able_since`, and so does a broker that has answered
        and taken nothing for so long (`failing_since`). `standby`: it sends nothing because another beat does, which
        is no outage.
        """
        before, last = self._able_since, self._last_tick
        was_standby, self._standby = self._standby, standby
        self.broker_takes_nothing = failing_since is not None and now - failing_since > self.unavailable_after
        self._unable_reason = self._why_unable(broker_answers)
        if self._unable_reason:
            self._able_since = None
        elif before is None or last is None or now - last > self.unavailable_after:
            self._able_since = now
        self._last_tick = now
        changed = before != self._able_since
        if changed or self._reported is None or now - self._reported >= _REPORT:
            if changed and self._able_since is not None and not was_standby:
                self._record_outage(now, before, last)
            if not self._report():
                # Somebody has deleted the row while this process was suspended.
                self._row = scheduler_rows.register(self.using)
                self._report()
            self._any_able_since = scheduler_rows.able_since(self.using, now, self.unavailable_after)
            self._reported = now
            self._reported_monotonic = clock.monotonic()

    def report_if_due(self, failing_since: datetime | None) -> None:
        """Report between two steps of a long tick, so that a busy scheduler is not taken for one that is gone."""
        if clock.monotonic() - self._reported_monotonic >= _REPORT.total_seconds():
            self.tick_begins(database_clock.now(self.using), True, failing_since)

    def tick_ended(self, now: datetime) -> None:
        """Measure the next gap from now, unless this tick itself took longer than `unavailable_after`."""
        if self._last_tick is None or now - self._last_tick <= self.unavailable_after:
            self._last_tick = now

    def missed_before(self, now: datetime, late: timedelta) -> datetime:
        """The instant before which nominal times are missed: nobody was able to send then, or they are later than
        `late`.
        """
        # One message that breaks every connection must not make all others missed: what is a little late stays late.
        unable = now - self.unavailable_after if self.broker_takes_nothing else now
        return max(self._any_able_since or self._able_since or unable, now - late)

    def stop(self) -> None:
        """Report for the last time, and say that this scheduler has stopped."""
        if self._row is not None:
            self._report()
            scheduler_rows.stop(self.using, self._row)
            self._row = None

    def _why_unable(self, broker_answers: bool) -> str:
        if self._standby:
            return Beat.Unable.STANDBY
        if not broker_answers:
            return Beat.Unable.BROKER_UNAVAILABLE
        return Beat.Unable.BROKER_REFUSES if self.broker_takes_nothing else ""

    def _report(self) -> bool:
        return scheduler_rows.report(
            self.using,
            self.row,
            able_since=self._able_since,
            unable_reason=self._unable_reason,
            lag=self.lag,
            failed=self.failed,
            tally=events.counted_since(self.using, self._counted_before),
        )

    def _record_outage(self, now: datetime, before: datetime | None, last: datetime | None) -> None:
        """This scheduler can send and could not before: if no other could either, that was an outage."""
        others = scheduler_rows.able_since(self.using, now, self.unavailable_after, besides=self.row)
        if others is not None:
            return
        waited = before is None and last is not None and now - last <= self.unavailable_after
        outage = outages.ended(
            self.using, now, self.unavailable_after, beat=self.row, waited=waited, lived=last is not None
        )
        if outage is not None:
            logger.warning("no scheduler was able to send from %s to %s", outage.began_at, outage.ended_at)
