"""A scheduler on the database that ONEBEAT_TEST_DB names, under a pinned clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onebeat.core import clock
from tests.engine.kit import START, Bench


@pytest.fixture
def bench(transactional_db: None) -> Iterator[Bench]:
    """A scheduler at work since START, with nothing to do yet."""
    with clock.pin(START):
        bench = Bench()
        bench.tick()
        yield bench
        bench.engine.close()
