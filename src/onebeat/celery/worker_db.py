"""Asking the database from a worker, whose connections belong to the tasks it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connections, router

from onebeat.core import clock
from onebeat.db import lost_connections, transactions
from onebeat.models import Occurrence

logger = logging.getLogger("onebeat")

T = TypeVar("T")

#: How long a statement is tried again while the database asks for that (deadlock, SQLite busy), in seconds.
_PATIENCE = 5.0
#: How long nothing is recorded after a failure, in seconds: an outage must not cost every task its connect timeout.
_PAUSE = 5.0

_quiet_until: float | None = None


def ask(work: Callable[[str], T], *, keep: bool = False) -> T:
    """`work(using)` on the ledger's database. Raises Django's database errors.

    A connection that has been open for long may be dead without knowing it: then once more on a new one. The task finds
    its connection as it was. `keep`: one that is opened stays open for the body that follows.
    """
    using = router.db_for_write(Occurrence)
    link = connections[using]
    was_open = link.connection is not None
    stays = False
    try:
        try:
            answer = _try(link, work)
        except (OperationalError, InterfaceError):
            if not was_open or link.in_atomic_block:
                raise
            lost_connections.drop_connection(using)
            answer = _try(link, work)
        stays = was_open or keep
        return answer
    finally:
        # One that failed may be broken; in the worker's main process an open one would be inherited by what it forks.
        if not stays and not link.in_atomic_block:
            lost_connections.drop_connection(using)


def quietly(work: Callable[[str], T], *, keep: bool = False) -> T | None:
    """The same for what no task may fail for: None when it cannot be done, logged once until it can be again."""
    global _quiet_until
    if _quiet_until is not None and clock.monotonic() < _quiet_until:
        return None
    try:
        answer = ask(work, keep=keep)
    except Exception as error:  # whatever it is, it is not the task's
        if _quiet_until is None:
            logger.warning("outcomes of tasks cannot be recorded for now: %s", error)
        _quiet_until = clock.monotonic() + _PAUSE
        return None
    if _quiet_until is not None:
        logger.warning("outcomes of tasks are recorded again")
        _quiet_until = None
    return answer


def _try(link: Any, work: Callable[[str], T]) -> T:
    with lost_connections.django_errors(link.alias):
        return transactions.retrying(link.alias, lambda: work(link.alias), limit_seconds=_PATIENCE)
