"""Stopping within a second: between two flushes if at all possible, in the middle of a call only if that call hangs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: How long a piece of work may go on after somebody asked to stop. What is then left claimed is released, or its lease
#: ends.
_LIMIT_SECONDS = 0.7


class Stop:
    """Whether this process was asked to stop, by a signal or by `request`."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        self._event.set()

    def requested(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the request, at most so long. Returns whether it came."""
        return self._event.wait(seconds)

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
    def shield(self) -> Iterator[None]:
        """Put SIGTERM and SIGINT off until the block ends, and request a stop at once so that it ends soon.

        A block that hangs longer is interrupted by `SystemExit`. In a thread that is not the main one there are no
        signals to put off.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        caught: list[int] = []

        def put_off(number: int, frame: FrameType | None) -> None:
            self.request()
            caught.append(number)
            signal.setitimer(signal.ITIMER_REAL, _LIMIT_SECONDS)

        def interrupt(number: int, frame: FrameType | None) -> None:
            raise SystemExit(0)

        before = {number: signal.signal(number, put_off) for number in _SIGNALS}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, interrupt)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
        if caught:
            signal.raise_signal(caught[0])
