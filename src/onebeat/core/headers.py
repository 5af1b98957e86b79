"""Headers of a message that are not a person's to set: by them Celery and onebeat know which run a message is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

#: Celery's message protocol 2. Left free are those that only describe or limit a run (`shadow`, `timelimit`, `stamps`,
#: `argsrepr` and their kind): Celery lets a sender's own win there, and people use that.
_CELERY = frozenset(
    {
        *("id", "task", "lang", "root_id", "parent_id", "group", "group_index", "retries", "replaced_task_nesting"),
        *("eta", "expires", "origin", "compression"),
    }
)
#: What Celery's own beat sets, by which Celery's events and others know a scheduled message.
BEAT_HEADER = "celery_beat_task"
#: What readers of django-celery-beat's messages know.
NAME_HEADER = "periodic_task_name"
#: onebeat's own: the uid of the task, the nominal time (ISO 8601, UTC) and the run number. By these three a worker
#: finds the occurrence, whatever keys its row or the task's row have by then.
TASK_HEADER = "onebeat_task"
DUE_HEADER = "onebeat_due_at"
RUN_HEADER = "onebeat_run"
_PREFIX = "onebeat_"


def reserved(names: Iterable[str]) -> list[str]:
    """Those of `names` that are not a person's to set, in order of the alphabet."""
    return sorted(name for name in names if name in _CELERY or name == NAME_HEADER or name.startswith(_PREFIX))


def refusal(names: Collection[str]) -> str:
    """Why these are refused, in one line."""
    return f"headers: Celery or onebeat sets {', '.join(names)}; give {'it' if len(names) == 1 else 'them'} other names"


def free(headers: dict[str, Any]) -> dict[str, Any]:
    """The headers without those that are reserved: rows from before the rule may hold some."""
    ours = reserved(headers)
    return {name: value for name, value in headers.items() if name not in ours} if ours else headers
