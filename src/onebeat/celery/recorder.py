"""The record of runs, written beside the tasks: what a worker's process has seen goes to the ledger in batches, by a
thread of its own (a greenlet under gevent and eventlet) over a connection of its own.
"""

from __future__ import annotations

import logging
import os
import threading

from django.db import DataError, Error, IntegrityError

from onebeat.celery.worker_db import OwnConnection
from onebeat.conf import current as settings
from onebeat.core import clock
from onebeat.db.bulk_rows import PORTION
from onebeat.store import attempts
from onebeat.store.attempts import Run

logger = logging.getLogger("onebeat")

#: What the database, or its driver, says of a row that it does not take. Any other error is of no row.
_REFUSED = (DataError, IntegrityError, ValueError, TypeError, OverflowError)

#: How many runs wait at most, of those whose record may be dropped and of those whose end decides something.
_MOST = 10_000
#: How long nothing is tried after a failure, in seconds.
_PAUSE = 1.0
#: After so many seconds without anything to write the connection is closed.
_IDLE = 60.0
#: How long a process that ends tries to write what is left, in seconds.
LAST_TRIES = 5.0


class Recorder:
    """What one process has seen and not written yet. A start and its end that come soon after each other are one
    change.
    """

    def __init__(self) -> None:
        self.connection = OwnConnection()
        #: How many records were given up, since there were too many and the database could not be asked.
        self.dropped = 0
        self._runs: dict[int, Run] = {}
        #: Those whose end decides something: never dropped.
        self._deciding: dict[int, Run] = {}
        self._lock = threading.Lock()
        self._space = threading.Condition(self._lock)
        self._flushing = threading.Lock()
        self._some, self._hurry = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def put(self, run: Run, *, at_once: bool = False) -> None:
        """Take a run that has started or ended, to be written within `record_seconds`. `at_once`: written, if that can
        be done now, when this returns; in a test (under a pinned clock) always.

        Waits only for room for an end that decides something, told by the process that ran the body.
        """
        kept = run.decides and run.end is not None
        with self._lock:
            if kept and run.token is not None and len(self._deciding) >= _MOST:
                logger.warning("a task waits: the ends of %d runs could not be recorded yet", _MOST)
                self._space.wait_for(lambda: len(self._deciding) < _MOST)
            if kept and len(self._deciding) < _MOST:
                self._runs.pop(id(run), None)
                self._deciding[id(run)] = run
            else:
                self._runs[id(run)] = run
                self._drop_oldest()
        if at_once or clock.pinned() is not None:
            self.flush()
            return
        if not self._some.is_set():
            self._begin()
            self._some.set()
        if run.awaited and run.end is not None:
            self._hurry.set()

    def flush(self, seconds: float = -1) -> bool:
        """Write what is there, in this thread. Returns whether nothing is left; what is left is tried again.

        Where another thread is writing just now it waits for that, `seconds` at most (-1: as long as it takes).
        """
        if not self._flushing.acquire(timeout=seconds):
            return False
        try:
            with self._lock:
                self._some.clear()
                self._hurry.clear()
                left = [*self._runs.values(), *self._deciding.values()]
                self._runs, self._deciding = {}, {}
            try:
                left = self._written(left)
            finally:
                self._put_back(left)
            return not left
        finally:
            self._flushing.release()

    def _put_back(self, left: list[Run]) -> None:
        """Before those that have come meanwhile."""
        with self._lock:
            kept = {id(run): run for run in left if run.decides and run.end is not None}
            runs = {id(run): run for run in left} | self._runs
            self._runs = {key: run for key, run in runs.items() if key not in kept}
            self._deciding = kept | self._deciding
            self._drop_oldest()
            self._space.notify_all()
        if left and clock.pinned() is None:
            self._begin()
            self._some.set()

    def close(self, seconds: float = LAST_TRIES) -> None:
        """Write what is there, and try for so long: this process ends."""
        deadline = clock.monotonic() + seconds
        while not self.flush(max(0.0, deadline - clock.monotonic())):
            if clock.monotonic() >= deadline:
                left = len(self._runs) + len(self._deciding)
                logger.error("%d runs end without a record: the database cannot be asked", left)
                break
            clock.pause(0.1)
        self.connection.close()

    def _drop_oldest(self) -> None:
        while len(self._runs) > _MOST:
            del self._runs[next(iter(self._runs))]
            self.dropped += 1

    def _begin(self) -> None:
        """The thread starts when there is something to write: a process that forks has none of its own to lose."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="onebeat recorder", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            if not self._some.wait(_IDLE):
                self.connection.close()
                continue
            self._hurry.wait(settings().record_seconds)
            try:
                self.flush()
            except Exception:  # whatever it is, the next one is tried
                logger.exception("outcomes of tasks could not be recorded")
                clock.pause(_PAUSE)
            if self._failing:
                clock.pause(_PAUSE)

    def _written(self, runs: list[Run]) -> list[Run]:
        """Write these, in portions. Returns those that are left."""
        left: list[Run] = []
        for start in range(0, len(runs), PORTION):
            try:
                left += self._portion(runs[start : start + PORTION])
            except Error as error:
                self._cannot(error)
                return left + runs[start:]
        if runs and self._failing:
            self._can_again()
        return left

    def _portion(self, runs: list[Run]) -> list[Run]:
        """One statement for all; a run that the database refuses stops no other."""
        durable = any(run.decides and run.end is not None for run in runs)
        try:
            left = self.connection.ask(lambda using: attempts.write(using, runs, durable=durable))
        except _REFUSED as error:
            if len(runs) == 1:
                logger.warning("the record of %s cannot be written: %s", runs[0].attempt, error)
                return []
            half = len(runs) // 2
            return self._portion(runs[:half]) + self._portion(runs[half:])
        for run in runs:
            run.start_is_known = run.start_is_known or run not in left
        return left

    def _cannot(self, error: Error) -> None:
        if not self._failing:
            logger.warning("outcomes of tasks cannot be recorded for now: %s", error)
        self._failing = True

    def _can_again(self) -> None:
        self._failing = False
        logger.warning("outcomes of tasks are recorded again; %d were dropped", self.dropped)


_recorder: Recorder | None = None
#: What a forked process has inherited: its connection is the parent's, and is never touched, nor closed by being
#: forgotten.
_inherited: list[Recorder] = []


def recorder() -> Recorder:
    """The recorder of this process."""
    global _recorder
    if _recorder is None:
        _recorder = Recorder()
    return _recorder


def _forked() -> None:
    global _recorder
    if _recorder is not None:
        _inherited.append(_recorder)
        _recorder = None


os.register_at_fork(after_in_child=_forked)
