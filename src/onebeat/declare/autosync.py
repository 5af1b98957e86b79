"""When the sync takes place by itself: after `migrate`, when a scheduler starts, and while it is at work."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from django.core import mail
from django.db import DatabaseError, InterfaceError, OperationalError, router

from onebeat.core import clock
from onebeat.db import database_clock, schema
from onebeat.declare import registry, sources
from onebeat.declare.sources import Source
from onebeat.declare.sync import Report, seen, sync
from onebeat.dispatch.celery.app import made_here
from onebeat.models import PeriodicTask

logger = logging.getLogger("onebeat")

#: How often a scheduler says which version of the code it runs, in seconds.
_SAY_SECONDS = 60.0


class AtWork:
    """A scheduler's part: the sync when it starts, then a word now and then that its version is at work."""

    def __init__(self, using: str, find: Callable[[], list[Source]]) -> None:
        self.using = using
        self._find: Callable[[], list[Source]] | None = find
        self._sources: list[Source] | None = None
        self._started: datetime | None = None
        self._next = clock.monotonic()

    def step(self) -> None:
        """Do what is to be done now. Raises only what says that the database is away."""
        if self._find is None or clock.monotonic() < self._next:
            return
        try:
            self._step(self._find)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.error("what code declares is not stored: %s", error)
        except Exception as error:  # whatever a project's module raises
            logger.error("what code declares is not stored, the tasks stay as they are: %s", registry.failure(error))
            self._find = None
        self._next = clock.monotonic() + _SAY_SECONDS

    def _step(self, find: Callable[[], list[Source]]) -> None:
        if self._sources is None:
            found = find()
            self._started = database_clock.now(self.using)
            log_report(sync(self.using, found))
            self._sources = found
        elif not seen(self.using, self._sources):
            report = sync(self.using, self._sources, started=self._started)
            if "back" in report.standings.values():
                log_report(report)


def of_scheduler(app: object) -> list[Source]:
    """What a scheduler declares with this Celery app."""
    return [sources.of_apps(), sources.of_settings(app)]


def log_report(report: Report) -> None:
    """Log what a sync did."""
    for refused in report.refused:
        logger.error("the task %r, as code declares it, is refused: %s", refused.name, refused.why)
    for name, note in report.notes:
        logger.warning("the task %r, as code declares it: %s", name, note)
    for source, standing in report.standings.items():
        if standing == "older":
            logger.warning(
                "an older version of the code: what its %s declare is not stored, a newer version has said otherwise; "
                "`manage.py onebeat sync` stores it", source,
            )  # fmt: skip
    for change in report.changes:
        if change.what not in ("same", "deleted"):
            logger.info("%s: %s (%s)", change.what, change.name, ", ".join(change.fields()))


def after_migrate(using: str, **kwargs: object) -> None:
    """Receiver of `post_migrate`. A `flush` sends it as well, and is no `migrate`.

    A test's database gets nothing by itself: every test would have tasks that it does not know of.
    """
    in_a_test = hasattr(mail, "outbox")  # made by Django's `setup_test_environment`
    if in_a_test or "plan" not in kwargs or using != router.db_for_write(PeriodicTask) or not schema.complete(using):
        return
    try:
        found = [sources.of_apps()]
        app = made_here()
        if app is not None:
            found.append(sources.of_settings(app))
        log_report(sync(using, found))
    except Exception as error:  # the tables are migrated; `check` has said what is wrong with a module
        logger.error("what code declares is not stored: %s", registry.failure(error))
