"""Fixtures for tests on real databases and brokers. Only `bench` needs Django, and imports it when it is used.

Tests marked `django_db` run in this process, on the database that ONEBEAT_TEST_DB names (SQLite if unset).
Tests that take `database` or `broker` run once for each one that is there. See tests/services.py for how they
are found, and tests/processes.py for running code in other processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import services
from tests.processes import spawning
from tests.scratch import Post, Scratch, Templates

if TYPE_CHECKING:
    from tests.engine.kit import Bench


def pytest_configure(config: pytest.Config) -> None:
    # xdist's workers inherit our environment, so the servers must be in it before they start.
    controller = bool(getattr(config.option, "numprocesses", None)) and not hasattr(config, "workerinput")
    if (controller or os.environ.get("CI")) and not config.option.help and services.missing():
        lines = [f"  {name}: {reason}" for name, reason in services.missing().items()]
        if os.environ.get("CI"):
            raise pytest.UsageError("\n".join(["CI is set and these services are missing:", *lines]))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture in {"database", "blank_database"} & set(metafunc.fixturenames):
        found = services.databases()
        metafunc.parametrize(fixture, found, ids=[each.name for each in found], indirect=True)
    if "broker" in metafunc.fixturenames:
        found_brokers = services.brokers()
        metafunc.parametrize("broker", found_brokers, ids=[each.name for each in found_brokers], indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What works on a scheduler's bench, or declares tasks, is in-process work on a database: `make test` repeats it on
    each kind.
    """
    fixtures = getattr(item, "fixturenames", ())
    if "bench" in fixtures:
        item.add_marker(pytest.mark.django_db(transaction=True))
    elif "still" in fixtures:
        item.add_marker(pytest.mark.django_db)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long begin first, so that no worker is left alone with one at the end."""
    if os.environ.get("ONEBEAT_TEST_ALL") != "1":
        for item in items:
            long = item.get_closest_marker("long")
            if long and (not long.args or any(name in item.name for name in long.args)):
                item.add_marker(pytest.mark.skip(reason="NOT RUN: takes minutes; ONEBEAT_TEST_ALL=1 runs it"))
    first = {item.path for item in items if any(item.get_closest_marker(name) for name in ("slow", "concurrency"))}
    items.sort(key=lambda item: (item.path not in first, "takeover" not in item.path.parts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section("services")
    terminalreporter.write_line(f"django_db tests ran on: {os.environ.get('ONEBEAT_TEST_DB') or 'sqlite'}")
    for line in services.report() if services.asked() else ["no other service was needed"]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def templates() -> Iterator[Templates]:
    made = Templates()
    yield made
    made.drop()


@pytest.fixture
def database(request: pytest.FixtureRequest, templates: Templates) -> Iterator[Scratch]:
    """A fresh, migrated database of its own, for this test; once for each kind of database."""
    with Scratch.open(request.param, templates.of(request.param)) as scratch:
        yield scratch


@pytest.fixture
def blank_database(request: pytest.FixtureRequest) -> Iterator[Scratch]:
    """A fresh database without any table."""
    with Scratch.open(request.param) as scratch:
        yield scratch


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Post]:
    """A queue of its own on a broker, for this test; once for each broker."""
    with Post.open(request.param) as post:
        yield post


@pytest.fixture
def bench(transactional_db: None) -> Iterator[Bench]:
    """A scheduler at work since START, on the database that ONEBEAT_TEST_DB names, with nothing to do yet. The clock
    stands; to the scheduler nothing takes any time, on a slow machine too.
    """
    from onebeat.core import clock
    from tests.engine.kit import START, Bench

    with clock.pin(START), clock.using(clock.Source(monotonic=lambda: 0.0)):
        bench = Bench()
        bench.tick()
        yield bench
        bench.engine.close()


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts `python *args` in the background, with the given environment. It is killed after the test."""
    with spawning(tmp_path) as start:
        yield start
