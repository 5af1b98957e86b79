"""A task with an `apply_async` of its own, for the schedulers of a test: CELERY_IMPORTS names this module."""

from __future__ import annotations

from typing import Any

from celery import Task

from tests.project.celery import app


class Stamping(Task):  # type: ignore[type-arg]
    """What tenants and tracers do: something is added on the way out."""

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        return super().apply_async(args, {**(kwargs or {}), "stamp": "by apply_async"}, **options)


@app.task(base=Stamping, name="tests.engine.fleet_tasks.stamped")
def stamped(stamp: str = "") -> None: ...
