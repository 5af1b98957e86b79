"""Whether schedulers have been able to send, and since when: what tells a missed turn from a late one."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from onebeat.core import clock
from onebeat.db import database_clock
from onebeat.store import counters, outages, scheduler_rows

logger = logging.getLogger("onebeat")

#: How often a scheduler reports that it is at work.
_REPORT = timedelta(seconds=2)


class Heartbeat:
    """This scheduler's row in `Beat`, and what it knows of the others'."""

    def __init__(self, using: str, away: timedelta) -> None:
        self.using = using
        self.away = away
        self.lag = timedelta(0)
        #: The broker answers and takes nothing, and has done so for longer than `away`.
        self.refused = False
        #: How many messages could not be handed over since the process started.
        self.failed = 0
        self._counted_before = counters.since(using, {})
        self._held = False
        self._beat: int | None = None
        self._able_since: datetime | None = None
        self._any_able_since: datetime | None = None
        self._seen: datetime | None = None
        self._reported: datetime | None = None
        self._reported_monotonic = clock.monotonic()

    @property
    def beat(self) -> int:
        """The key of this scheduler's row, made when it is first needed."""
        if self._beat is None:
            self._beat = scheduler_rows.register(self.using)
        return self._beat

    def seen(self, now: datetime, ready: bool, failing_since: datetime | None = None, *, held: bool = False) -> None:
        """A tick begins, and the broker answers or not. A gap between ticks longer than `away` breaks the record, and
        so does a broker that has answered and taken nothing for so long. `held`: it sends nothing because another beat
        does, which is no outage."""
        before, last = self._able_since, self._seen
        was_held, self._held = self._held, held
        self.refused = failing_since is not None and now - failing_since > self.away
        if not ready or self.refused:
            self._able_since = None
        elif before is None or self._seen is None or now - self._seen > self.away:
            self._able_since = now
        self._seen = now
        changed = before != self._able_since
        if changed or self._reported is None or now - self._reported >= _REPORT:
            if changed and self._able_since is not None and not was_held:
                self._able_again(now, before, last)
            if not self._report():
                self._beat = scheduler_rows.register(self.using)  # somebody tidied up while this process was suspended
                self._report()
            self._any_able_since = scheduler_rows.able_since(self.using, now, self.away)
            self._reported = now
            self._reported_monotonic = clock.monotonic()

    def _report(self) -> bool:
        return scheduler_rows.report(
            self.using,
            self.beat,
            able_since=self._able_since,
            lag=self.lag,
            failed=self.failed,
            tally=counters.since(self.using, self._counted_before),
        )

    def _able_again(self, now: datetime, before: datetime | None, last: datetime | None) -> None:
        """It can send, and could not at the tick before: if nobody else could either, that was an outage."""
        if scheduler_rows.able_since(self.using, now, self.away, besides=self.beat) is not None:
            return
        waited = before is None and last is not None and now - last <= self.away
        found = outages.ended(self.using, now, self.away, beat=self.beat, waited=waited, lived=last is not None)
        if found is not None:
            logger.warning("no scheduler was able to send from %s to %s", found.began_at, found.ended_at)

    def still_at_work(self, failing_since: datetime | None) -> None:
        """Asked between two steps of a long tick: reports in time, so that a scheduler that is busy is not taken for
        one that is away."""
        if clock.monotonic() - self._reported_monotonic >= _REPORT.total_seconds():
            self.seen(database_clock.now(self.using), True, failing_since)

    def rests(self, now: datetime) -> None:
        """A tick has ended: what counts as a gap begins here, unless one lies in the tick itself."""
        if self._seen is None or now - self._seen <= self.away:
            self._seen = now

    def missed_before(self, now: datetime, late: timedelta) -> datetime:
        """Turns before this instant could not be kept: nobody was able to send then, or they are later than `late`."""
        # One message that breaks every connection must not make all others missed: what is a little late stays late.
        since = self._any_able_since or self._able_since or (now - self.away if self.refused else now)
        return max(since, now - late)

    def stop(self) -> None:
        if self._beat is not None:
            self._report()  # the last counts
            scheduler_rows.stop(self.using, self._beat)
            self._beat = None
