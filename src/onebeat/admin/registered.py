"""Whether arguments fit the tasks that the Celery app of this process knows."""

from __future__ import annotations

import inspect
from typing import Any

from django.utils.translation import gettext


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
