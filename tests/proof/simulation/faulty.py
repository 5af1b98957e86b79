"""Where a simulated process can be hit: before and after each statement, COMMIT, message and named step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from django.db import OperationalError, connection

#: Boundaries: the database's own, and those at which another process may come in between.
STATEMENTS = ("before statement", "after statement")
COMMITS = ("before commit", "after commit")
STEPS = ("step", "before message", "after message")


class Died(BaseException):
    """A simulated process ended here, without a word. No `except Exception` may catch it."""


@dataclass(frozen=True)
class Hit:
    """One fault to come: from the `boundary`-th boundary of a process on, at the first one that it fits."""

    boundary: int
    #: "crash", "error" (of the database), "commit" (its reply is lost), "suspend" or "lost" (the broker's connection).
    action: str
    lasts: timedelta = timedelta(0)
    #: Aimed at this kind of boundary, or at any of those while it records what was sent ("recording"); empty: at any.
    only: str = ""

    def fits(self, kind: str, recording: bool = False) -> bool:
        """Whether it can happen here."""
        if self.only and kind != self.only and not (recording and self.only == "recording"):
            return False
        if self.action == "crash":
            return True
        if self.action == "commit":
            return kind == "after commit"
        if self.action == "error":
            return kind in STATEMENTS or kind == "before commit"
        if self.action == "lost":
            return kind in ("before message", "after message")
        # All share one connection: whoever is in a transaction, or reads an answer, cannot be suspended.
        return not connection.in_atomic_block and kind not in ("after statement", *COMMITS)


class Watching(Protocol):
    def boundary(self, kind: str) -> None: ...

    def shared(self) -> bool:
        """Whether somebody else stands in the middle of a use of the connection."""
        ...


@contextmanager
def watched(world: Watching) -> Iterator[None]:
    """Tell `world` of each boundary of the database's, while the block runs."""

    def around(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        world.boundary("before statement")
        found = execute(sql, params, many, context)
        world.boundary("after statement")
        return found

    commit, close = connection.commit, connection.close

    def closed() -> None:
        if not world.shared():
            return close()
        # What a lost connection means to its own process alone.
        if connection.connection is not None:
            connection.connection.rollback()
        connection.savepoint_ids, connection.run_on_commit = [], []
        connection.in_atomic_block = connection.needs_rollback = False
        connection.autocommit = True
        return None

    def committed() -> None:
        world.boundary("before commit")
        commit()
        world.boundary("after commit")

    connection.commit, connection.close = committed, closed  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(around):
            yield
    finally:
        del connection.commit, connection.close


def failure(kind: str) -> OperationalError:
    """What a driver raises when its server is gone."""
    return OperationalError(f"the connection was lost {kind} (simulated)")
