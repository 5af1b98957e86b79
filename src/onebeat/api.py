"""The verbs: what people and programs do with tasks.

Each joins the caller's transaction: nothing of it has happened if that rolls back. `using` names the database; without
it, the one that the router gives for tasks. `by` is whoever does it, a user or a word; it is recorded with `why`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from onebeat.core.message_request import MessageOptions
from onebeat.core.verdict import Verdict
from onebeat.queries.upcoming import Upcoming
from onebeat.store.manual_runs import Run
from onebeat.verbs.base import ALL, Tag
from onebeat.verbs.links import linked
from onebeat.verbs.looking import explain, upcoming
from onebeat.verbs.once import IfExists, Once, OnceItem, cancel, once, once_many
from onebeat.verbs.once_changes import OnceState
from onebeat.verbs.pausing import pause, resume
from onebeat.verbs.resuming import CatchUp
from onebeat.verbs.run_now import run_now
from onebeat.verbs.skipping import skip
from onebeat.verbs.switching import disable, duplicate, enable

P = ParamSpec("P")
T = TypeVar("T")

__all__ = [
    "ALL",
    "CatchUp",
    "IfExists",
    "MessageOptions",
    "Once",
    "OnceItem",
    "OnceState",
    "Run",
    "Tag",
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
    "duplicate",
    "enable",
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


def _twin(verb: Callable[P, T]) -> Callable[P, Coroutine[object, object, T]]:
    """The verb for asynchronous code: it runs in the thread that has the request's database connection."""

    async def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        return await sync_to_async(verb, thread_sensitive=True)(*args, **kwargs)

    twin.__name__ = twin.__qualname__ = f"a{getattr(verb, '__name__', 'verb')}"
    twin.__doc__ = f"`{getattr(verb, '__name__', 'verb')}` for asynchronous code.\n\n    {verb.__doc__}"
    return twin


acancel = _twin(cancel)
adisable = _twin(disable)
aduplicate = _twin(duplicate)
aenable = _twin(enable)
aexplain = _twin(explain)
aonce = _twin(once)
aonce_many = _twin(once_many)
apause = _twin(pause)
aresume = _twin(resume)
arun_now = _twin(run_now)
askip = _twin(skip)
aupcoming = _twin(upcoming)
