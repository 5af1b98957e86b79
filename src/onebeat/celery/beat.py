"""`celery -A proj beat -S onebeat`: the engine inside Celery's beat service."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from celery import beat
from django.db import router

from onebeat.celery import hooks
from onebeat.conf import current
from onebeat.declare import autosync
from onebeat.declare.sources import Source
from onebeat.engine.loop import Loop, new_loop, settle_in
from onebeat.models import TaskState

logger = logging.getLogger("onebeat")


class Scheduler(beat.Scheduler):
    """Celery's beat calls `tick` and sleeps as long as it answers; all else is the engine's.

    Making one, lazily or not, touches neither the database nor the broker. Any number may run.
    """

    #: Celery's ceiling for one sleep, in seconds; the engine asks for less.
    max_interval = 5
    #: Nothing is kept in memory that Celery would have to sync.
    sync_every = 3600

    def __init__(self, app: Any, *args: Any, **kwargs: Any) -> None:
        self._loop: Loop | None = None
        self._ticking = False
        super().__init__(app, *args, **kwargs)

    def setup_schedule(self) -> None:
        """Nothing to load: the table is the schedule. What code declares is stored before the first tick."""

    def declared_in_code(self) -> list[Source]:
        """What code declares: the `schedules.py` of the apps, and the entries of CELERY_BEAT_SCHEDULE."""
        return autosync.of_scheduler(self.app)

    def tick(self, *args: object, **kwargs: object) -> float:
        """Do what is due. Returns the seconds that beat may sleep."""
        if self._loop is None:
            self._loop = self._new_loop()
            settle_in()
        self._ticking = True
        try:
            delay = self._loop.tick()
        finally:
            self._ticking = False
        return min(delay, float(self.max_interval))

    def close(self) -> None:
        """Leave things in order. Celery calls this from its signal handler as well, perhaps in the middle of a tick,
        and again when the tick has been left: the second time it is done."""
        if self._ticking or self._loop is None:
            return
        loop, self._loop = self._loop, None
        loop.close()

    @property
    def info(self) -> str:
        """A line for beat's banner."""
        return f"    . poll -> {current().poll_interval:g}s"

    def _new_loop(self) -> Loop:
        # Inside `celery worker -B` nobody handles SIGTERM in beat's process; leave by the front door there too.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _leave)
        using = router.db_for_write(TaskState)
        dispatcher = hooks.dispatcher(self, current().plain_below, using)
        return new_loop(dispatcher, using, autosync.AtWork(using, self.declared_in_code).step)


def _leave(number: int, frame: object) -> None:
    raise SystemExit(0)
