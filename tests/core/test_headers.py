"""Headers that no person may set, and those that a broker cannot carry: refused by name before anything is stored."""

from __future__ import annotations

from typing import Any

import pytest

from onebeat.core.headers import problem


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"id": "x"}, "id"),
        ({"onebeat_task": 1, "task": "x"}, "onebeat_task, task"),
        ({"x" * 256: 1}, "255 bytes"),
        ({"é" * 128: 1}, "255 bytes"),
        ({"big": 2**63}, "64 bits"),
        ({"big": {"inside": [1, -(2**63) - 1]}}, "64 bits"),
        ({"deep": nested(60)}, "50 levels"),
        ({"long": "x" * 140_000}, "100,000 characters"),
    ],
)
def test_what_cannot_be_is_refused_by_name(headers: dict[str, Any], named: str) -> None:
    assert problem(headers).startswith("headers: ")
    assert named in problem(headers)
    assert problem(headers, kept=headers) == "", "what stands in a row already may stay"


def test_what_can_be_passes() -> None:
    assert problem({"x" * 255: 2**63 - 1, "list": [1, {"a": None}], "tenant": "a", "deep": nested(50)}) == ""
