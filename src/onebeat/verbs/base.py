"""What the verbs share: whom they mean, when, by whom, and the transaction they run in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.db import DatabaseError, connections, router, transaction

from onebeat.db import schema, transactions
from onebeat.errors import InvalidArgument
from onebeat.models import PeriodicTask
from onebeat.queries import task_lookup
from onebeat.queries.task_lookup import Named

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tag:
    """The tasks that have this tag (`TaskOptions.tags`)."""

    name: str


class All:
    """Every task. Use `onebeat.ALL`."""

    def __repr__(self) -> str:
        return "onebeat.ALL"


#: Every task, also those that are made later.
ALL: Final = All()

One = str | PeriodicTask
Which = str | PeriodicTask | Tag | All


def alias_of(using: str | None) -> str:
    """The database that is meant: the one that the router gives for tasks, if none is named."""
    return using or router.db_for_write(PeriodicTask)


def do(using: str | None, work: Callable[[str], T]) -> T:
    """Run `work` in the caller's transaction, or in one of its own that is tried again when the database asks for that.

    An error of onebeat's own leaves the caller's transaction usable. After a database error that asks for another try,
    such as a deadlock, the caller's transaction must be rolled back and run again by the caller.
    """
    alias = alias_of(using)
    schema.require(alias)

    def once() -> T:
        with transactions.short_transaction(alias):
            return work(alias)

    if not transactions.in_transaction(alias):
        return transactions.retrying(alias, once)
    try:
        return once()
    except DatabaseError as error:
        if transactions.retryable(error) and connections[alias].in_atomic_block:
            transaction.set_rollback(True, using=alias)
        raise


def task_of(using: str, one: One) -> tuple[int, str]:
    """The key and the name of a task. Raises `UnknownTask`."""
    if isinstance(one, str):
        return task_lookup.named(using, one)
    if isinstance(one, PeriodicTask) and one.pk is not None:
        return one.pk, one.name
    raise InvalidArgument(f"a task is meant by its name or its saved object, not by {one!r}")


def tasks_of(using: str, which: str | PeriodicTask | Tag) -> Named:
    """The tasks that are meant, by key. Raises `UnknownTask`."""
    if isinstance(which, Tag):
        return task_lookup.tagged(using, which.name)
    return dict([task_of(using, which)])


def instant(name: str, value: datetime | timedelta, now: datetime) -> datetime:
    """An aware datetime, or a timedelta from now, as an instant. Raises `InvalidArgument` naming the argument."""
    if isinstance(value, timedelta):
        return now + value
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{name}: an aware datetime or a timedelta is needed, not {type(value).__name__}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidArgument(f"{name}: {value.isoformat()} has no time zone; use django.utils.timezone.make_aware")
    return value.astimezone(now.tzinfo)


def who_is(by: object) -> str:
    """A user's name, or the text that was given."""
    if by is None:
        return ""
    return str(by.get_username() if hasattr(by, "get_username") else by)[:200]
