"""The coming and the past runs of a task."""

from __future__ import annotations

from datetime import datetime, timedelta

from onebeat.core.verdict import Verdict
from onebeat.db import database_clock, schema
from onebeat.errors import InvalidArgument
from onebeat.queries import explain as explaining
from onebeat.queries import upcoming as ahead
from onebeat.queries.upcoming import Upcoming
from onebeat.verbs.base import ALL, All, One, Which, alias_of, instant, tasks_of


def upcoming(
    which: Which = ALL,
    count: int = 10,
    until: datetime | timedelta | None = None,
    *,
    using: str | None = None,
) -> list[Upcoming]:
    """The next `count` nominal times of a task, of all with a tag, or of `ALL`, in the order in which they leave.

    `until` (an aware datetime, or a timedelta from now): none after it. Times that will be skipped are in the list with
    the reason; what a clock change does to a time is in its note. A task that is disabled or quarantined has no time
    ahead. Writes nothing. Raises `UnknownTask`.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidArgument(f"count: a whole number from 1 up is needed, not {count!r}")
    alias = alias_of(using)
    schema.require(alias)
    now = database_clock.now(alias)
    end = None if until is None else instant("until", until, now)
    of = None if isinstance(which, All) else tasks_of(alias, which)
    return ahead.upcoming(alias, of, count, end, now)


def explain(one: One, when: datetime, *, using: str | None = None) -> Verdict:
    """What became of a task at `when` (aware), or will, and why: `.sentence` for people, `.kind` and `.facts`.

    Of a deleted task the name leads to what the ledger still has. Raises `UnknownTask`, and `ValueError` for a naive
    `when`.
    """
    alias = alias_of(using)
    schema.require(alias)
    return explaining.explain(alias, one, instant("when", when, database_clock.now(alias)))
