"""How many runs fall into each minute to come. Pure functions."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.core.recurrence import Recurrence

MINUTE = timedelta(minutes=1)


class Load:
    """Runs for each minute from `start`, a whole minute, `minutes` long."""

    def __init__(self, start: datetime, minutes: int) -> None:
        self.start = start
        self.end = start + minutes * MINUTE
        self.counts = [0.0] * minutes

    def at(self, instant: datetime, runs: float = 1) -> None:
        """Count so many runs at an instant; one outside is left out."""
        if self.start <= instant < self.end:
            self.counts[(instant - self.start) // MINUTE] += runs

    def every_minute(self, runs: float) -> None:
        """Count so many runs, or parts of one, in each minute."""
        self.counts = [count + runs for count in self.counts]

    def rule(self, recurrence: Recurrence, tasks: int, limit: int) -> int:
        """Count the runs of so many tasks on one rule, `limit` of them at most; returns how many were walked."""
        walked, at = 0, recurrence.after(self.start - timedelta(microseconds=1))
        while at is not None and at < self.end and walked < limit:
            self.at(at, tasks)
            at = recurrence.after(at)
            walked += 1
        return walked

    def busiest(self, bucket: int) -> list[float]:
        """For each stretch of `bucket` minutes, the runs of its busiest minute."""
        return [max(self.counts[n : n + bucket]) for n in range(0, len(self.counts), bucket)]

    def peaks(self, count: int) -> list[tuple[datetime, float]]:
        """The busiest minutes, the busiest first; among equals the soonest."""
        ranked = sorted(range(len(self.counts)), key=lambda n: (-self.counts[n], n))
        return [(self.start + n * MINUTE, self.counts[n]) for n in ranked[:count] if self.counts[n] > 0]
