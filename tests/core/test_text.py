"""Foreign text is made fit for a column."""

from __future__ import annotations

import pytest

from onebeat.core.text import storable


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("a\0b", "ab"),
        ("half \ud83d", "half \\ud83d"),
        ("x" * 50, "x" * 20),
        ("\ud83d" * 20, "\\ud83d" * 3 + "\\u"),
        ("é" * 30, "é" * 20),
    ],
)
def test_what_a_text_column_refuses_is_left_out_or_spelled_out(text: str, kept: str) -> None:
    assert storable(text, 20) == kept
