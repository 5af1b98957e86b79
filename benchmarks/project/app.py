"""The Celery app of the benchmarks, with one task that does nothing."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery

app = Celery("benchmarks")
app.config_from_object("django.conf:settings", namespace="CELERY")


@app.task(name="benchmarks.nothing")
def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing. No worker runs here: what counts is what reaches the broker."""


if _observer := os.environ.get("BENCH_OBSERVER"):
    from benchmarks.project.observers import OBSERVERS

    OBSERVERS[_observer](app)
