"""The tasks that the Celery app of this process knows, and whether arguments fit them."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from celery import current_app
from django.utils.translation import gettext

logger = logging.getLogger("onebeat")


def tasks() -> dict[str, Any]:
    """The registered tasks by name, Celery's own left out. Looked up each time: tasks are registered late."""
    try:
        current_app.loader.import_default_modules()
    except Exception:  # a broken task module is its owner's to mend; the page opens all the same
        logger.exception("the modules of Celery's tasks could not be imported")
    return {name: task for name, task in current_app.tasks.items() if not name.startswith("celery.")}


def names() -> set[str]:
    """The names of all registered tasks, Celery's own included."""
    return {*tasks(), *current_app.tasks}


def signature(task: Any) -> str:
    """What the task takes, as its function is written; empty when that cannot be seen."""
    try:
        return str(inspect.signature(task.run))
    except (TypeError, ValueError):
        return ""


def misfit(task: Any, args: Any, kwargs: Any) -> str:
    """Why a call with these arguments would fail in the worker; empty when it would not, or nobody can tell.

    Asked the way Celery asks when it sends: a bound task's own `self` is not counted.
    """
    check = getattr(task, "__header__", None)
    if check is None or not isinstance(args, list) or not isinstance(kwargs, dict):
        return ""
    try:
        check(*args, **kwargs)
    except TypeError as error:
        return gettext("The arguments do not fit the task: %(error)s. It takes %(signature)s.") % {
            "error": str(error),
            "signature": signature(task),
        }
    except Exception:  # whatever a task's own header does is no fault of the person at the form
        return ""
    return ""
