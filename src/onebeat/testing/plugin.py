"""The pytest plugin: the fixture `onebeat`, and its timeline under a test that fails."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest


@pytest.fixture
def onebeat(db: None) -> Iterator[object]:
    """An `onebeat.testing.Onebeat`: the clock stands, a scheduler is at work on the test's database."""
    from onebeat.testing.kit import Onebeat

    kit = Onebeat().start()
    yield kit
    kit.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Put the timeline under a test that fails."""
    report = yield
    kit: object = getattr(item, "funcargs", {}).get("onebeat")
    if call.when == "call" and report.failed and hasattr(kit, "timeline"):
        try:
            text = kit.timeline()
        except Exception as error:  # the test may have broken its transaction
            text = f"it cannot be read: {error!r}"
        report.sections.append(("onebeat timeline (UTC)", text))
    return report
