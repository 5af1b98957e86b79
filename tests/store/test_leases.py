"""Many schedulers ask for the housekeeping at once: one has it, on each database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.processes import processes
from tests.scratch import Scratch

pytestmark = [pytest.mark.concurrency, pytest.mark.timeout(150)]

ROUNDS = 20


def take_each(index: int) -> list[int | None]:
    """The term under which this process holds each lease; None where another one does."""
    from onebeat.db import transactions
    from onebeat.store import leases

    span = timedelta(hours=1)
    names = [f"round {number}" for number in range(ROUNDS)]
    return [
        transactions.retrying("default", lambda name=name: leases.take("default", name, index, span)) for name in names
    ]


def test_one_of_many_takes_a_lease(database: Scratch) -> None:
    outcomes = processes(6, database.env, take_each)
    assert not any(one.error for one in outcomes), outcomes
    for terms in zip(*(one.value for one in outcomes), strict=True):
        assert [term for term in terms if term is not None] == [1]
