"""A project whose code a test writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from onebeat.core import clock
from onebeat.declare import registry, sources
from onebeat.declare.sync import Report, sync
from tests.engine.kit import START
from tests.project.celery import app


@pytest.fixture
def still(db: None) -> Iterator[None]:
    """The database of the test, at START, where the clock stands. No scheduler."""
    with clock.pin(START):
        yield


Code = Callable[..., Report]


@pytest.fixture
def code() -> Iterator[Code]:
    """`code(task(...), ..., settings={...})`: from now on code declares this, and nothing else. Syncs and returns what
    was done. Each argument is what `recurring` takes, as a tuple and a dict.
    """
    before, entries = dict(registry._declared), app.conf.beat_schedule

    def declare(*given: Any, settings: dict[str, Any] | None = None, **how: Any) -> Report:
        registry._declared.clear()
        for args, kwargs in given:
            registry.recurring(*args, **kwargs)
        app.conf.beat_schedule = settings or {}
        return sync("default", [sources.of_apps(), sources.of_settings(app)], **how)

    yield declare
    registry._declared.clear()
    registry._declared.update(before)
    app.conf.beat_schedule = entries
