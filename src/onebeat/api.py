"""The verbs: what people and programs do with tasks.

Each joins the caller's transaction: nothing of it has happened if that rolls back. `using` names the database; without
it, the one that the router gives for tasks. `by` is whoever does it, a user or a word; it is recorded with `why`.
"""

from __future__ import annotations

from onebeat.core.errors import KeyTaken, UnknownTask
from onebeat.core.jsonable import NotJSON
from onebeat.store.byhand import Run
from onebeat.store.changing import OnceState
from onebeat.store.pausing import CatchUp
from onebeat.verbs.acting import pause, resume, run_now, skip
from onebeat.verbs.base import ALL, Tag
from onebeat.verbs.links import linked
from onebeat.verbs.onceoff import IfExists, Once, OnceItem, cancel, once, once_many
from onebeat.wanted import MessageOptions

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
    "cancel",
    "linked",
    "once",
    "once_many",
    "pause",
    "resume",
    "run_now",
    "skip",
]
