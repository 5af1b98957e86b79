"""What code says now, what it said before, and what is there: who wins, by field and by version of the code. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

#: A newer version of the code that nobody has run for this long is gone: an older one that was started since may take
#: over without being told to.
QUIET = timedelta(minutes=10)

Said = Mapping[str, Any]
Standing = Literal["current", "newer", "older", "back"]


@dataclass(frozen=True, slots=True)
class Merged:
    """`put`: fields to set, with their values. `kept`: fields that stay as a person has made them, each with what code
    says."""

    put: dict[str, object]
    kept: dict[str, object]


def merge(before: Said | None, now: Said, here: Said, defaults: Said) -> Merged:
    """Bring a row to what code says `now`, as far as nobody else has changed it since code said `before`.

    `before` None: the row was there before code said anything of it, and whatever differs is kept. A field that code
    does not name is nobody's business here; one that it names no more goes back to its default.
    """
    put, kept = {}, {}
    for name in {**(before or {}), **now}:
        says = now.get(name, defaults[name])
        if here[name] == says:
            continue
        if before is not None and here[name] == before.get(name, defaults[name]):
            put[name] = says
        elif name in now:
            kept[name] = says
    return Merged(put, kept)


def standing(
    mine: str,
    known: Sequence[str],
    *,
    seen_at: datetime | None,
    since: datetime | None,
    started: datetime,
    now: datetime,
) -> Standing:
    """How a version of the code stands: what a process whose code is `mine` may do about what it declares.

    `known`: every version that has been the current one, oldest first; the last one is it now. `seen_at`: when a
    process of that one was last seen; `since`: since when it is the current one; `started`: when this process began.
    "newer": never seen before, so it becomes the current one. "older": it was the current one and another followed,
    which stays. "back": so it was, and nobody runs the newer one any more, so it becomes the current one again.
    """
    if mine not in known:
        return "newer"
    if mine == known[-1]:
        return "current"
    gone = seen_at is None or now - seen_at > QUIET
    return "back" if gone and (since is None or started > since) else "older"
