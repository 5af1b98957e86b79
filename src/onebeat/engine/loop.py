"""Tick after tick, through everything that may go wrong with a database or a broker."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from pathlib import Path

from django.db import Error

from onebeat.conf import current
from onebeat.db import lost_connections, schema, transactions
from onebeat.dispatch.base import Dispatcher
from onebeat.engine.assembly import Assembly
from onebeat.engine.stop import Stop
from onebeat.engine.tick import Engine

logger = logging.getLogger("onebeat")

_FIRST_PAUSE = 0.1
#: How long a database that does not answer may hold up the end.
_GOODBYE_SECONDS = 2.0


def settle_in() -> None:
    """Tell the garbage collector that what a scheduler's process has loaded so far stays: it looked through all of it
    again and again while a claim makes objects, which took a tenth of the time of a long backlog.
    """
    gc.collect()
    gc.freeze()


def new_loop(dispatcher: Dispatcher, using: str, beside: Callable[[], None]) -> Loop:
    """A scheduler for the database `using` under the project's settings, put together. `beside`: as for `Loop`.

    Raises `ImproperlyConfigured` for a database without autocommit.
    """
    transactions.require_autocommit(using)
    stop = Stop()
    dispatcher.stopping = stop.requested
    engine = Engine(Assembly(dispatcher, current(), using, stopping=stop.requested))
    return Loop(engine, stop, beside)


class Loop:
    """Runs an engine until it is asked to stop."""

    def __init__(self, engine: Engine, stop: Stop, beside: Callable[[], None] = lambda: None) -> None:
        """`beside` is called before each tick on a database that is migrated."""
        self.engine = engine
        self.beside = beside
        self.stop = stop
        self._pause = 0.0
        self._broken = False
        self._untouched = False
        self._migrated = False
        self._lacking: list[str] = []

    def tick(self) -> float:
        """One tick; returns the seconds to wait before the next. The database's errors end here: it is tried again
        later.
        """
        self._alive()
        try:
            with self.stop.shield(), lost_connections.django_errors(self.engine.parts.using):
                delay = self.engine.parts.settings.poll_interval
                if self._ready():
                    self.beside()
                    delay = self.engine.tick()
        except Error as error:
            return self._failed(error)
        except BaseException:
            self._broken = True  # perhaps in the middle of a statement
            raise
        if self._pause:
            logger.warning("the database is back")
        self._pause = 0.0
        return delay

    def run(self) -> None:
        """Tick until asked to stop, then leave things in order."""
        settle_in()
        try:
            while not self.stop.requested():
                self.stop.wait(self.tick())
        finally:
            self.close()

    def close(self) -> None:
        """Give back what is claimed and say goodbye. If the database is away, the leases will do it."""
        if self._broken:
            self._drop_connection()
        try:
            with self.stop.shield(at_most=_GOODBYE_SECONDS), lost_connections.django_errors(self.engine.parts.using):
                self.engine.close()
        except (Error, SystemExit) as error:
            logger.warning("stopped without the database: %r", error)
            self._drop_connection()

    def _alive(self) -> None:
        """Touch the liveness file, if there is to be one. Whether the database answers makes no difference to it."""
        if not self.engine.parts.settings.liveness_file:
            return
        try:
            Path(self.engine.parts.settings.liveness_file).touch()
        except OSError as error:
            if not self._untouched:
                logger.error("liveness_file cannot be touched: %s", error)
            self._untouched = True

    def _ready(self) -> bool:
        """Whether `migrate` has made what this code needs; said when that changes."""
        if not self._migrated:
            before, self._lacking = self._lacking, schema.lacking(self.engine.parts.using)
            if self._lacking and self._lacking != before:
                missing = ", ".join(self._lacking)
                logger.warning("waiting for `manage.py migrate`, nothing is sent until then; missing: %s", missing)
            elif before and not self._lacking:
                logger.warning("the database is migrated: going on")
            self._migrated = not self._lacking
        return self._migrated

    def _failed(self, error: Error) -> float:
        if transactions.retryable(error):
            logger.info("the database asks to try again: %s", error)
            return _FIRST_PAUSE
        self._migrated = False  # a table may have gone
        if not self._pause:
            logger.error("the database failed; trying again until it is back: %s", error)
        self._pause = min(max(self._pause * 2, _FIRST_PAUSE), self.engine.parts.settings.poll_interval)
        self._drop_connection()
        return self._pause

    def _drop_connection(self) -> None:
        self._broken = False
        lost_connections.drop_connection(self.engine.parts.using)
