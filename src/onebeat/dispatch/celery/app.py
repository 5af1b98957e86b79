"""The Celery app of this process: the one place that finds it and that says which tasks it knows."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from celery import _state, current_app
from celery.app.utils import find_app

from onebeat.errors import UnknownApp

logger = logging.getLogger("onebeat")

#: Schedulers by name that keep the entries of the settings in a way of their own.
_OTHERS = ("celery.beat:PersistentScheduler", "onebeat")


def find(name: str | None = None, *, with_tasks: bool = False) -> object:
    """The Celery app that `name` names as `module:attribute`; without a name, the current one.

    `with_tasks`: the modules that register its tasks are imported too. Raises `UnknownApp`.
    """
    try:
        app: Any = find_app(name) if name else current_app._get_current_object()  # type: ignore[attr-defined]
        if with_tasks:
            app.loader.import_default_modules()
    except (ImportError, AttributeError) as error:
        raise UnknownApp(f"--app {name}: {error}") from error
    return app


def tasks() -> dict[str, object]:
    """The registered tasks by name, Celery's own left out. Looked up each time, since tasks are registered late."""
    try:
        current_app.loader.import_default_modules()
    except Exception:  # a broken task module is its owner's to mend; whoever asks goes on with what is there
        logger.exception("the modules of Celery's tasks could not be imported")
    return {name: task for name, task in current_app.tasks.items() if not name.startswith("celery.")}


def task_names() -> set[str]:
    """The names of all registered tasks, Celery's own included."""
    return {*tasks(), *current_app.tasks}


def task(name: str) -> Any:
    """The registered task of this name. Raises KeyError as Celery does."""
    return current_app.tasks[name]


def misfit(task: Any, args: object, kwargs: object) -> str | None:
    """Why a call of a registered task with these arguments would fail in the worker; None if it would not, or if
    nobody can tell. Asked as Celery asks when it sends: a bound task's own `self` is not counted.
    """
    header = getattr(task, "__header__", None)
    if header is None or not getattr(task, "typing", True) or not isinstance(args, list | tuple):
        return None
    try:
        header(*args, **(kwargs if isinstance(kwargs, dict) else {}))
    except TypeError as error:
        return str(error)
    except Exception:  # whatever a task's own header does is no fault of the arguments
        return None
    return None


def signature(task: Any) -> str:
    """What a registered task takes, as its function is written; empty when that cannot be seen."""
    try:
        return str(inspect.signature(task.run))
    except (TypeError, ValueError):
        return ""


def settings_prefix() -> str:
    """What the names of Celery's settings begin with in Django's: the app's namespace, else CELERY."""
    return getattr(current_app, "namespace", None) or "CELERY"


def timezone() -> object:
    """The time zone of the current app."""
    return current_app.timezone


def in_this_process() -> Any:
    """The Celery app that this process has made; None if it has made none, so that none is made for a question."""
    state: Any = _state  # its published types leave these out
    return getattr(state._tls, "current_app", None) or state.default_app


def made_here() -> Any:
    """The Celery app that this process has made, if its entries are onebeat's to store; else None.

    A process that has none knows the settings, and not what the app adds to them: it cannot tell what has left.
    """
    app = in_this_process()
    if app is None or app.main == "default" or app.conf.beat_scheduler not in _OTHERS:
        return None
    return app
