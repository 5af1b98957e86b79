"""Check-ins on their way to Sentry, by a thread of this process.

The SDK keeps at most 100 envelopes and drops any more without a word, which would leave monitors open. So they are
handed to it a few at a time, each lot when the one before has left.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import deque
from typing import Any

import sentry_sdk

logger = logging.getLogger("onebeat")

#: How many are handed to the SDK together, which may have envelopes of its own; and how long it may take to send them.
_LOT = 50
_LOT_SECONDS = 30.0
#: How many wait at most; the oldest are dropped then.
_MOST = 20_000
#: How long the end of a process waits for them.
_GOODBYE_SECONDS = 5.0

#: A check-in, or headers, as JSON has them.
Values = dict[str, Any]


class Outbox:
    """Check-ins that wait, and the thread that takes them away; made anew in each process that forks."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.dropped = 0
        self._waiting: deque[tuple[Values, Values]] = deque()
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def put(self, check_in: Values, trace: Values) -> None:
        """Send a check-in soon. `trace`: the headers that name its trace."""
        with self._changed:
            if len(self._waiting) >= _MOST:
                self._waiting.popleft()
                self.dropped += 1
                if self.dropped == 1:
                    logger.warning("Sentry takes check-ins too slowly: the oldest of %d are dropped", _MOST)
            self._waiting.append((check_in, trace))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="onebeat-sentry", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, seconds: float = _GOODBYE_SECONDS) -> None:
        """Wait until all have left, at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                lot = [self._waiting.popleft() for _ in range(min(_LOT, len(self._waiting)))]
                self._busy = True
            for check_in, trace in lot:
                try:
                    _capture(check_in, trace)
                except Exception:  # the others may be taken
                    logger.exception("a check-in could not be handed to Sentry")
            try:
                sentry_sdk.flush(timeout=_LOT_SECONDS)
            except Exception:  # the thread goes on: what comes next may be sent
                logger.exception("check-ins could not be sent to Sentry")
            with self._changed:
                self._busy = False
                self._changed.notify_all()


def _capture(check_in: Values, trace: Values) -> None:
    with sentry_sdk.isolation_scope() as scope:
        if trace:
            scope.generate_propagation_context(trace)
        options = sentry_sdk.get_client().options
        event: Any = {"type": "check_in", **check_in}
        event |= {name: options.get(name) for name in ("environment", "release")}
        sentry_sdk.capture_event(event)


_outbox = Outbox()


def outbox() -> Outbox:
    """That of this process."""
    global _outbox
    if _outbox.pid != os.getpid():
        _outbox = Outbox()
    return _outbox


@atexit.register
def goodbye(**kwargs: object) -> None:
    """The process ends: what waits is sent first."""
    outbox().flush()
