"""celery-redbeat, as `celery beat` builds it. Its tasks live in Redis, so it makes them itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from celery.schedules import schedule
from redbeat import RedBeatSchedulerEntry
from redbeat.schedulers import RedBeatScheduler


class Scheduler:
    """One scheduler; `start` is what a process does after its imports."""

    def __init__(self, app: Any) -> None:
        self.app = app
        app.conf.redbeat_redis_url = app.conf.broker_url
        app.conf.redbeat_lock_key = None

    def fill(self, count: int, *, due: bool) -> None:
        """Make `count` tasks: each due now, or in a day."""
        last = datetime.now(UTC) - (timedelta(days=2) if due else timedelta(0))
        every = schedule(timedelta(days=1), app=self.app)
        for number in range(count):
            RedBeatSchedulerEntry(
                f"task {number}", "benchmarks.nothing", every, args=[0], app=self.app, last_run_at=last
            ).save()

    def start(self) -> None:
        self.scheduler = RedBeatScheduler(app=self.app, lazy=True)
        self.scheduler.setup_schedule()

    def tick(self) -> float:
        """One step; seconds to wait before the next."""
        return float(self.scheduler.tick() or 0.0)

    def close(self) -> None:
        self.scheduler.close()
