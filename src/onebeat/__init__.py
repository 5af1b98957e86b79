"""onebeat: the database-backed scheduler for Django and Celery."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onebeat.errors import (
    InvalidArgument,
    InvalidMessage,
    InvalidSchedule,
    KeyTaken,
    NoSuchTime,
    NotJSON,
    OnebeatError,
    SolarUnavailable,
    UnknownTask,
    Unschedulable,
)

if TYPE_CHECKING:
    from onebeat.api import (
        ALL,
        CatchUp,
        IfExists,
        MessageOptions,
        Once,
        OnceItem,
        OnceState,
        Run,
        Tag,
        Upcoming,
        Verdict,
        acancel,
        adisable,
        aduplicate,
        aenable,
        aexplain,
        aonce,
        aonce_many,
        apause,
        aresume,
        arun_now,
        askip,
        aupcoming,
        cancel,
        disable,
        duplicate,
        enable,
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
    from onebeat.declare.overriding import Override, drop_override, overrides
    from onebeat.declare.registry import Declaration, recurring
    from onebeat.declare.values import Cron, Every, Solar

__all__ = [
    "ALL",
    "CatchUp",
    "Cron",
    "Declaration",
    "Every",
    "IfExists",
    "InvalidArgument",
    "InvalidMessage",
    "InvalidSchedule",
    "KeyTaken",
    "MessageOptions",
    "NoSuchTime",
    "NotJSON",
    "Once",
    "OnceItem",
    "OnceState",
    "OnebeatError",
    "Override",
    "Run",
    "Solar",
    "SolarUnavailable",
    "Tag",
    "UnknownTask",
    "Unschedulable",
    "Upcoming",
    "Verdict",
    "acancel",
    "adisable",
    "aduplicate",
    "aenable",
    "aexplain",
    "aonce",
    "aonce_many",
    "apause",
    "aresume",
    "arun_now",
    "askip",
    "aupcoming",
    "cancel",
    "disable",
    "drop_override",
    "duplicate",
    "enable",
    "explain",
    "linked",
    "once",
    "once_many",
    "overrides",
    "pause",
    "recurring",
    "resume",
    "run_now",
    "skip",
    "upcoming",
]

#: What can be imported before the models are loaded.
_ELSEWHERE = {
    "linked": "onebeat.verbs.links",
    **dict.fromkeys(("Cron", "Every", "Solar"), "onebeat.declare.values"),
    **dict.fromkeys(("Override", "drop_override", "overrides"), "onebeat.declare.overriding"),
    **dict.fromkeys(("Declaration", "recurring"), "onebeat.declare.registry"),
}


def __getattr__(name: str) -> Any:
    # The verbs need Django's models, which come when the apps are loaded; `import onebeat` comes before.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE.get(name, "onebeat.api")), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
