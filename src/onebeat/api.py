"""The verbs: what people and programs do with tasks.

Each joins the caller's transaction: nothing of it has happened if that rolls back. `using` names the database; without
it, the one that the router gives for tasks. `by` is whoever does it, a user or a word; it is recorded with `why`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from django.db import router

from onebeat.core.errors import UnknownTask
from onebeat.models import PeriodicTask
from onebeat.store import byhand, pausing, rows, vendors
from onebeat.store.byhand import Run
from onebeat.store.pausing import CatchUp
from onebeat.store.rows import Named

__all__ = ["ALL", "CatchUp", "Run", "Tag", "UnknownTask", "pause", "resume", "run_now", "skip"]

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


def pause(
    which: Which,
    why: str = "",
    until: datetime | timedelta | None = None,
    *,
    by: object = None,
    using: str | None = None,
) -> int:
    """Send nothing of a task (by its name), of all with a tag, or of `ALL`, until resumed.

    `until`: the pause ends by itself then: an aware datetime, or a timedelta from now. Times that pass in the pause are
    recorded as skipped, with their reason. Seen by schedulers within their poll interval. Returns how many tasks it
    paused. Raises `UnknownTask`.
    """

    def work(alias: str) -> int:
        now = vendors.now(alias)
        end = None if until is None else instant("until", until, now)
        of = _which(alias, which)
        pausing.pause(alias, of, end, why, _who(by), now)
        rows.record(alias, "pause", of, _who(by), why, f"until {end.isoformat()}" if end else "", now)
        return len(of)

    return _do(using, work)


def resume(
    which: Which,
    *,
    catch_up: CatchUp = "none",
    why: str = "",
    by: object = None,
    using: str | None = None,
) -> int:
    """End the pause of a task, of all with a tag, or of `ALL`. Returns how many were paused.

    `catch_up`: what becomes of the times that the pause has skipped: "none" leaves them skipped, "latest" runs the
    newest one, "all" runs each, up to 1,000 of a task. They run as numbers of their own beside the record of the skip,
    whatever the policy says of late times. Raises `UnknownTask`, and `ValueError` if there are too many to catch up.
    """
    if catch_up not in ("none", "latest", "all"):
        raise ValueError(f'catch_up: "none", "latest" or "all" is needed, not {catch_up!r}')

    def work(alias: str) -> int:
        now, of = vendors.now(alias), _which(alias, which)
        done = pausing.resume(alias, of, catch_up, _who(by), now)
        rows.record(alias, "resume", of, _who(by), why, f"catch_up {catch_up}", now)
        return done

    return _do(using, work)


def skip(one: One, at: datetime, why: str = "", *, by: object = None, using: str | None = None) -> bool:
    """Take one nominal time of a task out of its schedule; the others stay. `at` is aware and exact.

    Returns whether it came in time: False if that time has been decided before. Raises `UnknownTask`, and `ValueError`
    if the schedule has no such time, naming the next one it has.
    """

    def work(alias: str) -> bool:
        now, (task, name) = vendors.now(alias), _one(alias, one)
        when = instant("at", at, now)
        done = pausing.skip(alias, task, when, why, _who(by), now)
        if done:
            rows.record(alias, "skip", {task: name}, _who(by), why, when.isoformat(), now)
        return done

    return _do(using, work)


def run_now(one: One, why: str = "", *, by: object = None, using: str | None = None) -> Run:
    """Run a task once, now, beside its schedule, which does not move. Also a task that is disabled or paused.

    It is the message that the scheduler would send, sent by a scheduler within its poll interval; the answer names the
    id that the message will have. Two calls are two runs. Raises `UnknownTask`.
    """

    def work(alias: str) -> Run:
        now, (task, name) = vendors.now(alias), _one(alias, one)
        who = _who(by)
        detail = ": ".join(filter(None, [f"asked for by {who}" if who else "asked for", why]))
        run = byhand.ask(alias, task, name, now, now, detail)
        rows.record(alias, "run_now", {task: name}, who, why, str(run.celery_task_id), now)
        return run

    return _do(using, work)


# -- what they share -------------------------------------------------------------------------------------------------


def _do(using: str | None, work: Callable[[str], T]) -> T:
    """Run `work` in the caller's transaction, or in one of its own that is tried again when the database asks for
    that."""
    alias = using or router.db_for_write(PeriodicTask)

    def once() -> T:
        with rows.change(alias):
            return work(alias)

    return vendors.retrying(alias, once)


def _one(using: str, one: One) -> tuple[int, str]:
    if isinstance(one, str):
        return rows.named(using, one)
    if isinstance(one, PeriodicTask) and one.pk is not None:
        return one.pk, one.name
    raise TypeError(f"a task is meant by its name or its saved object, not by {one!r}")


def _which(using: str, which: Which) -> Named:
    if isinstance(which, All):
        return dict(rows.tasks(using).values_list("pk", "name"))
    if isinstance(which, Tag):
        return rows.tagged(using, which.name)
    return dict([_one(using, which)])


def instant(name: str, value: datetime | timedelta, now: datetime) -> datetime:
    """An aware datetime, or a timedelta from now, as an instant. Raises `ValueError` naming the argument."""
    if isinstance(value, timedelta):
        return now + value
    if not isinstance(value, datetime):
        raise TypeError(f"{name}: an aware datetime or a timedelta is needed, not {type(value).__name__}")
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{name}: {value.isoformat()} has no time zone; use django.utils.timezone.make_aware")
    return value.astimezone(now.tzinfo)


def _who(by: Any) -> str:
    """A user's name, or the text that was given."""
    if by is None:
        return ""
    return str(by.get_username() if hasattr(by, "get_username") else by)[:200]
