"""Run counts that are not yet written to their tasks' rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from onebeat.conf import Settings
from onebeat.core import clock
from onebeat.store import run_counts
from onebeat.store.occurrences import Claimed

#: How many rows are written at once while there are messages to send: they wait no longer than that takes.
_PORTION = 50
#: With more than this owed, memory matters more.
_MOST = 10_000
#: Before each try to write them on the way out, in seconds.
_LAST_TRIES = (0.0, 0.05, 0.1)


class RunCountBuffer:
    """Run counts by task, written late, in portions, past rows that somebody holds."""

    def __init__(self, using: str, settings: Settings, reader: run_counts.Reader) -> None:
        self.using = using
        self._settings = settings
        self._reader = reader
        self._runs: dict[int, run_counts.Runs] = {}
        self._written = clock.monotonic()

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, sent: Iterable[Claimed], now: datetime) -> None:
        """These were sent at about `now`."""
        for one in sent:
            if (known := self._runs.get(one.task.id)) is not None:
                known.add(now)
            else:
                self._runs[one.task.id] = run_counts.Runs(1, now)

    def step(self, budget_seconds: float) -> None:
        """Write the counts that have waited long enough: one portion, and more as long as `budget_seconds` last. The
        rest follows at the next step.
        """
        begin = clock.monotonic()
        if not self._runs or begin - self._written < self._settings.run_state_seconds:
            return
        self._portions(_PORTION if len(self._runs) <= _MOST else self._settings.batch_size, begin + budget_seconds)

    def write(self) -> None:
        """Write all of it; what is locked by somebody waits for the next time."""
        self._portions(self._settings.batch_size, math.inf)

    def close(self) -> None:
        """Write all of it, and try a few times: schedulers that stop together hold the same rows for a moment."""
        for pause in _LAST_TRIES:
            if self._runs:
                clock.pause(pause)
                self.write()

    def _portions(self, size: int, until: float) -> None:
        """Write all of it, `size` at a time, or leave the rest when the stopwatch is at `until`."""
        tasks = list(self._runs)
        for start in range(0, len(tasks), size):
            self._write(tasks[start : start + size])
            if start + size < len(tasks) and clock.monotonic() >= until:
                return
        self._written = clock.monotonic()

    def _write(self, tasks: list[int]) -> None:
        part = {task: self._runs[task] for task in tasks}
        done = run_counts.flush(self.using, part, self._reader)
        for task in tasks:
            waiting = self._runs.pop(task)
            if task not in done:
                self._runs[task] = waiting  # behind the others
