"""A connection of the worker's own to the ledger's database, beside those of the tasks, which Celery closes around each
of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connections, router

from onebeat.core import clock
from onebeat.db import lost_connections, transactions
from onebeat.models import Occurrence

T = TypeVar("T")

#: How long a statement is tried again while the database asks for that (deadlock, SQLite busy), in seconds.
_PATIENCE = 5.0


class OwnConnection:
    """One connection for a process, for its threads in turn. It is opened when it is first needed."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._link: Any = None

    def ask(self, work: Callable[[str], T]) -> T:
        """`work(using)` on this connection. Raises Django's database errors.

        One that has been open for long may be dead without knowing it: then once more on a new one. Under a pinned
        clock, in a test, the caller's own connection is used: there a transaction may be open that no other sees.
        """
        using = router.db_for_write(Occurrence)
        if clock.pinned() is not None:
            return self._on_the_callers(using, work)
        with self._mutex:
            if self._link is None:
                self._link = self._new(using)
            was_open = self._link.connection is not None
            try:
                return self._work(using, work)
            except (OperationalError, InterfaceError):
                if not was_open:
                    raise
            return self._work(using, work)

    def close(self) -> None:
        """Close it; the next `ask` opens another."""
        with self._mutex:
            if self._link is not None:
                using = self._link.alias
                self._in_place(using, lambda: lost_connections.drop_connection(using))
                self._link = None

    @staticmethod
    def _new(using: str) -> object:
        link: Any = connections[using].copy()
        # Each statement is its own transaction, whatever the project's are; and it is kept, so it is not of a pool.
        link.settings_dict["AUTOCOMMIT"] = True
        link.settings_dict.get("OPTIONS", {}).pop("pool", None)
        link.inc_thread_sharing()
        return link

    def _work(self, using: str, work: Callable[[str], T]) -> T:
        return self._in_place(using, lambda: self._guarded(using, work))

    def _guarded(self, using: str, work: Callable[[str], T]) -> T:
        try:
            return _try(using, work)
        except BaseException:  # also a time limit: nobody knows what is on the wire
            lost_connections.drop_connection(using)
            raise

    def _in_place(self, using: str, work: Callable[[], T]) -> T:
        """Run `work` while this thread's connection of that name is this one."""
        before = connections[using]
        try:
            connections[using] = self._link
            return work()
        finally:
            connections[using] = before

    @staticmethod
    def _on_the_callers(using: str, work: Callable[[str], T]) -> T:
        link = connections[using]
        try:
            return _try(using, work)
        except (OperationalError, InterfaceError):
            if link.in_atomic_block:
                raise
            lost_connections.drop_connection(using)
        return _try(using, work)


def _try(using: str, work: Callable[[str], T]) -> T:
    with lost_connections.django_errors(using):
        return transactions.retrying(using, lambda: work(using), limit_seconds=_PATIENCE)
