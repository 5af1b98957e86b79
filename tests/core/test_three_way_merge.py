"""Who wins: code as it is, code as it was, or what is there. And whose turn it is to say so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from onebeat.core.three_way_merge import QUIET, merge, standing

NOTHING = "-"
DEFAULTS = {"f": NOTHING}

#: before, now, here -> put, kept. "" stands for: code says nothing of it; None: code has said nothing of the task.
CASES = [
    ("a", "a", "a", None, None),
    ("a", "b", "a", "b", None),
    ("a", "a", "p", None, "a"),
    ("a", "b", "p", None, "b"),
    ("a", "b", "b", None, None),
    # A field that code names no more goes back to its default, unless a person has changed it.
    ("a", "", "a", NOTHING, None),
    ("a", "", "p", None, None),
    ("a", "", NOTHING, None, None),
    # One that it names for the first time was at its default, or a person has set it.
    ("", "b", NOTHING, "b", None),
    ("", "b", "p", None, "b"),
    # What it never named is nobody's business here.
    ("", "", "p", None, None),
    # The row was there before code said anything of it.
    (None, "b", "p", None, "b"),
    (None, "b", NOTHING, None, "b"),
    (None, "b", "b", None, None),
]


@pytest.mark.parametrize(("before", "now", "here", "put", "kept"), CASES)
def test_field(before: str | None, now: str, here: str, put: str | None, kept: str | None) -> None:
    def said(text: str) -> dict[str, Any]:
        return {"f": text} if text else {}

    merged = merge(None if before is None else said(before), said(now), {"f": here}, DEFAULTS)
    assert merged.put == ({} if put is None else {"f": put})
    assert merged.kept == ({} if kept is None else {"f": kept})


T = datetime(2026, 3, 10, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mine", "seen", "started", "whose"),
    [
        ("v3", T, T, "newer"),
        ("v2", T, T, "current"),
        ("v1", T - QUIET, T, "older"),
        ("v1", T - QUIET - timedelta(seconds=1), T, "back"),
        # It was at work before the newer one came: that one has not started yet.
        ("v1", T - QUIET - timedelta(seconds=1), T - timedelta(hours=2), "older"),
    ],
)
def test_turn(mine: str, seen: datetime, started: datetime, whose: str) -> None:
    since = T - timedelta(hours=1)
    assert standing(mine, ["v1", "v2"], seen_at=seen, since=since, started=started, now=T) == whose
