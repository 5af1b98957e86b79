"""A scheduler on the database that ONEBEAT_TEST_DB names, under a pinned clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from onebeat.core import clock
from tests.engine.kit import START, Bench


@pytest.fixture
def bench(transactional_db: None) -> Iterator[Bench]:
    """A scheduler at work since START, with nothing to do yet. To it nothing takes any time, on a slow machine too."""
    with clock.pin(START), clock.using(clock.Source(monotonic=lambda: 0.0)):
        bench = Bench()
        bench.tick()
        yield bench
        bench.engine.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What works on a scheduler's bench is in-process work on a database: `make test` repeats it on each kind."""
    for item in items:
        if "bench" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db(transaction=True))
