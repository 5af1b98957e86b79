"""onebeat: the database-backed scheduler for Django and Celery."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onebeat.api import (
        ALL,
        CatchUp,
        IfExists,
        KeyTaken,
        MessageOptions,
        NotJSON,
        Once,
        OnceItem,
        OnceState,
        Run,
        Tag,
        UnknownTask,
        Upcoming,
        Verdict,
        acancel,
        aexplain,
        aonce,
        aonce_many,
        apause,
        aresume,
        arun_now,
        askip,
        aupcoming,
        cancel,
        explain,
        linked,
        once,
        once_many,
        pause,
        resume,
        run_now,
        skip,
        upcoming,
    )

__all__ = [
    "ALL",
    "CatchUp",
    "IfExists",
    "KeyTaken",
    "MessageOptions",
    "NotJSON",
    "Once",
    "OnceItem",
    "OnceState",
    "Run",
    "Tag",
    "UnknownTask",
    "Upcoming",
    "Verdict",
    "acancel",
    "aexplain",
    "aonce",
    "aonce_many",
    "apause",
    "aresume",
    "arun_now",
    "askip",
    "aupcoming",
    "cancel",
    "explain",
    "linked",
    "once",
    "once_many",
    "pause",
    "resume",
    "run_now",
    "skip",
    "upcoming",
]


def __getattr__(name: str) -> Any:
    # The verbs need Django's models, which come when the apps are loaded; `import onebeat` comes before.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # `linked` is for models, while they are being loaded.
    return getattr(import_module("onebeat.verbs.links" if name == "linked" else "onebeat.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
