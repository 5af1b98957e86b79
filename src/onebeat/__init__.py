"""onebeat: the database-backed scheduler for Django and Celery."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onebeat.api import ALL, CatchUp, Run, Tag, UnknownTask, pause, resume, run_now, skip

__all__ = ["ALL", "CatchUp", "Run", "Tag", "UnknownTask", "pause", "resume", "run_now", "skip"]


def __getattr__(name: str) -> Any:
    # The verbs need Django's models, which can be imported only when the apps are loaded; `import onebeat` comes before.
    if name in __all__:
        return getattr(import_module("onebeat.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
