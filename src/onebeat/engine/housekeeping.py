"""What one scheduler at a time does beside the ticks: the sweep and the retention, a little now and then."""

from __future__ import annotations

from datetime import timedelta

from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.db import database_clock
from onebeat.store import leases, retention, sweep

#: How long one scheduler has it. After a crash the next takes over when this has passed.
_LEASE = timedelta(seconds=10)
#: How often it is renewed by its holder, and asked for by the others, in seconds.
_ASK_SECONDS = 3.0
#: A pass of the retention begins so long after the one before has ended, in seconds.
_PASS_SECONDS = 900.0
#: The share of the time that pieces of the retention may take. How long one takes while there are messages to send, and
#: at most, in seconds: how many occurrences that are is learned from the pieces before.
_SHARE = 0.3
_SHORTEST, _LONGEST = 0.008, 0.25
_LEAST, _MOST = 100, 10_000


class Housekeeping:
    """The housekeeping of one scheduler, which does it while it holds the lease."""

    def __init__(self, using: str, settings: Settings) -> None:
        self.using = using
        self.settings = settings
        self._sweep = sweep.Sweep(using, settings.sweep_size, settings.poll_interval / 2)
        self._term: int | None = None
        self._asked: float | None = None
        self._next_piece = clock.monotonic()
        #: How many occurrences the retention looks at in a second, as far as is known.
        self._speed = float(_MOST)

    def step(self, beat: int, budget_seconds: float) -> bool:
        """Do a piece of what is to be done, if this scheduler is the one to do it. `beat` names it; `budget_seconds`:
        how long until something else is to be done. Returns whether a plan was changed.
        """
        if not self._mine(beat):
            return False
        planned = self._sweep.step(budget_seconds)
        begin = clock.monotonic()
        if begin >= self._next_piece:
            seconds = min(_LONGEST, max(_SHORTEST, budget_seconds * _SHARE))
            size = min(_MOST, max(_LEAST, int(self._speed * seconds)))
            done = self._prune(size)
            took = clock.monotonic() - begin
            self._speed += (size / max(took, seconds / 10) - self._speed) / 4
            self._next_piece = begin + (_PASS_SECONDS if done else took / _SHARE)
        return planned

    def close(self) -> None:
        """Release the lease, so that another scheduler takes the work up at once."""
        if self._term is not None:
            leases.release(self.using, leases.HOUSEKEEPING, self._term)
            self._term = self._asked = None

    def _mine(self, beat: int) -> bool:
        now = clock.monotonic()
        if self._asked is None or now - self._asked >= _ASK_SECONDS:
            self._asked = now
            if self._term is not None and not leases.renew(self.using, leases.HOUSEKEEPING, self._term, _LEASE):
                self._term = None
            if self._term is None:
                self._term = leases.take(self.using, leases.HOUSEKEEPING, beat, _LEASE)
        return self._term is not None

    def _prune(self, size: int) -> bool:
        """One piece, of so many occurrences. Returns whether the pass is over."""
        assert self._term is not None
        keep = retention.Keep.of(self.settings, database_clock.now(self.using))
        after, _ = retention.occurrences(self.using, keep, leases.place(self.using, leases.HOUSEKEEPING), size)
        leases.move(self.using, leases.HOUSEKEEPING, self._term, after or 0)
        if after is not None or retention.finished_tasks(self.using, keep, size):
            return False
        return not any(retention.rest(self.using, keep).values())
