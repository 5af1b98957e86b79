"""onebeat, as `manage.py onebeat run` builds it."""

from __future__ import annotations

from typing import Any

from onebeat.conf import current
from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
from onebeat.engine.assembly import Assembly
from onebeat.engine.loop import settle_in
from onebeat.engine.tick import Engine
from onebeat.models import ClockedSchedule, PeriodicTask


class Scheduler:
    """One scheduler; `start` is what a process does after its imports."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def start(self) -> None:
        settings = current()
        dispatcher = CeleryDispatcher(self.app, plain_below=settings.plain_below)
        self.engine = Engine(Assembly(dispatcher, settings))
        settle_in()

    def tick(self) -> float:
        """One step; seconds to wait before the next."""
        return self.engine.tick()

    def close(self) -> None:
        self.engine.close()


__all__ = ["ClockedSchedule", "PeriodicTask", "Scheduler"]
