"""Stopping within a second: between two flushes if at all possible, in the middle of a call only if that call hangs."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: How long a piece of work may go on after somebody asked to stop. What is then left claimed is released, or its lease
#: ends.
_LIMIT_SECONDS = 0.7
#: Then it is interrupted this often until it has ended: psycopg answers the first time by asking a server that does
#: not answer to cancel the query, for ten seconds.
_AGAIN_SECONDS = 0.4


class Stop:
    """Whether this process was asked to stop, by a signal or by `request`."""

    def __init__(self) -> None:
        self._requested = False
        # Not an Event: its `set`, called by a handler that has interrupted its `wait`, would wait for itself.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def request(self) -> None:
        """Ask to stop. May be called from a signal handler."""
        self._requested = True
        self._wake.put(None)

    def requested(self) -> bool:
        return self._requested

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most so long. Returns whether it came."""
        if not self._requested:
            with suppress(queue.Empty):
                self._wake.get(timeout=seconds)
        return self._requested

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT request a stop while the block runs."""
        before = {number: signal.signal(number, lambda *_: self.request()) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def shield(self, at_most: float | None = None) -> Iterator[None]:
        """Put SIGTERM and SIGINT off until the block ends, and request a stop at once so that it ends soon.

        A block that goes on too long after the signal, or after `at_most` seconds in any case, is interrupted by
        `SystemExit`. In a thread that is not the main one there are no signals to put off.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        caught: list[int] = []

        def put_off(number: int, frame: FrameType | None) -> None:
            self.request()
            caught.append(number)
            if at_most is None:
                signal.setitimer(signal.ITIMER_REAL, _LIMIT_SECONDS, _AGAIN_SECONDS)

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise SystemExit(0)

        before = {number: signal.signal(number, put_off) for number in _SIGNALS}
        alarm = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, at_most or 0, _AGAIN_SECONDS)
        try:
            yield
        finally:
            # In this order: a signal between two of these lines must neither be lost nor set the timer again.
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)
            # Also when the block failed: whoever deals with its error must not be left to go on.
            if caught:
                signal.raise_signal(caught[0])
