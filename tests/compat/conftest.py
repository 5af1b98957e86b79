"""Schedulers of Celery's beat, made in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.core import clock
from tests.compat.beating import waiting
from tests.engine.kit import START
from tests.project.celery import app

Make = Callable[..., Any]


@pytest.fixture
def make_now(transactional_db: None) -> Iterator[Make]:
    """Makes schedulers, which are closed in the end. The queue of the broker is empty."""
    made: list[Any] = []

    def scheduler(kind: type = DatabaseScheduler, **kwargs: Any) -> Any:
        made.append(kind(app=app, **kwargs))
        return made[-1]

    waiting()
    yield scheduler
    for one in made:
        one.close()


@pytest.fixture
def make(make_now: Make) -> Iterator[Make]:
    """The same at START, where the clock stands."""
    with clock.pin(START):
        yield make_now


@pytest.fixture
def declared() -> Iterator[dict[str, Any]]:
    """CELERY_BEAT_SCHEDULE of the project."""
    before = app.conf.beat_schedule
    app.conf.beat_schedule = {}
    yield app.conf.beat_schedule
    app.conf.beat_schedule = before
