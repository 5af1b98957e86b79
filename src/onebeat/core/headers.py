"""Headers of a message: which are not a person's to set, and what a broker can carry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

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
#: Whether the next run of the task waits for the end of this one (`overlap = skip`).
AWAITED_HEADER = "onebeat_awaited"
_PREFIX = "onebeat_"

_ABSENT = object()
_LONGEST_NAME = 255
_DEEPEST = 50
#: RabbitMQ's frames hold 131,072 bytes by default; Celery's own headers need some of them.
_LARGEST = 100_000


def reserved(names: Iterable[str]) -> list[str]:
    """Those of `names` that are not a person's to set, in order of the alphabet."""
    return sorted(name for name in names if name in _CELERY or name == NAME_HEADER or name.startswith(_PREFIX))


def problem(headers: Mapping[str, object], kept: Mapping[str, object] | None = None) -> str:
    """Why these headers of a message are refused, in one line; empty if they may stand.

    Refused are names that Celery or onebeat sets, and what AMQP cannot carry (AMQP 0-9-1, section 4.2.5): names beyond
    255 bytes, numbers beyond 64 bits, and more than one frame holds. `kept`: the headers of a row from before the rule;
    what stands there already may stay as it is.
    """
    changed = {name: value for name, value in headers.items() if kept is None or kept.get(name, _ABSENT) != value}
    if names := reserved(changed):
        return f"headers: Celery or onebeat sets {', '.join(names)}; give {_them(names)} other names"
    for name, value in changed.items():
        if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
            return f"headers: {name[:20]!r}...: a name of at most {_LONGEST_NAME} bytes is needed"
        if why := _uncarriable(value, _DEEPEST):
            return f"headers: {name!r}: {why}"
    if changed and len(json.dumps(headers, default=str)) > _LARGEST:
        return f"headers: at most {_LARGEST:,} characters in all are possible; put large values into the arguments"
    return ""


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _uncarriable(value: object, levels: int) -> str:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "a whole number of at most 64 bits is needed"
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if inside and not levels:
        return f"at most {_DEEPEST} levels of nesting are possible"
    return next(filter(None, (_uncarriable(each, levels - 1) for each in inside)), "")


def free(headers: dict[str, object]) -> dict[str, object]:
    """The headers without those that are reserved: rows from before the rule may hold some."""
    ours = reserved(headers)
    return {name: value for name, value in headers.items() if name not in ours} if ours else headers
