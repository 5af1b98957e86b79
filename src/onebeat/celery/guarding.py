"""The guard: each attempt of an occurrence starts once, however many copies of its message reach workers.

A project's Celery module imports this before Django is set up, so nothing here touches a model when it is imported.
"""

from __future__ import annotations

from typing import Any

from celery import Celery, signals
from celery.contrib.django.task import DjangoTask

from onebeat.errors import InvalidArgument

#: Where `guard` keeps an app's `restart_after`.
_RESTART_AFTER = "onebeat_restart_after"


class Guarded(DjangoTask):  # type: ignore[type-arg]
    """A base for tasks: `@app.task(base=Guarded)`. A second copy of an attempt is ignored before the body runs.

    A copy is what a scheduler's crash, a broker's redelivery or its visibility timeout makes. Retries are attempts of
    their own. Messages that no scheduler of onebeat has sent pass, and eager runs. A subclass with a `before_start` of
    its own has to call this one.

    `restart_after`, an option of the task, is what a worker's death after the start means. None: the attempt is over.
    A number of seconds: a copy that comes may start the attempt again, so long after it started and only if it has not
    ended. It must be longer than the task ever runs.
    """

    restart_after: float | None

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Run by the worker before the body. Raises Ignore for a copy."""
        from onebeat.celery import attempt_start

        attempt_start.once(self, restart_after(self))
        super().before_start(task_id, args, kwargs)


def guard(app: Celery, *, restart_after: float | None = None) -> Celery:
    """Guard every task of an app: `guard(app)` below the line that makes it. Returns the app.

    `restart_after` (seconds) is for tasks that have none of their own; see `Guarded`. Tasks are guarded when a worker
    starts, whatever their base; those registered later in its life are not.
    """
    if restart_after is not None and restart_after <= 0:
        raise InvalidArgument(f"restart_after must be above zero or None, not {restart_after!r}")
    setattr(app, _RESTART_AFTER, restart_after)
    signals.worker_init.connect(_guard_all, dispatch_uid="onebeat.guard", weak=False)
    return app


def restart_after(task: Any) -> float | None:
    """Seconds after which an attempt of this task that has not ended may be started again; None: never."""
    app: float | None = getattr(task.app, _RESTART_AFTER, None)
    own: float | None = getattr(task, "restart_after", app)
    return own


def _guard_all(sender: Any, **kwargs: Any) -> None:
    app = sender.app
    if not hasattr(app, _RESTART_AFTER):
        return
    for task in app.tasks.values():
        kind = type(task)
        if not issubclass(kind, Guarded):
            # Before everything else of its kind, so that a `before_start` of its own comes after the guard's.
            task.__class__ = type(kind.__name__, (Guarded, kind), {"__module__": kind.__module__})
