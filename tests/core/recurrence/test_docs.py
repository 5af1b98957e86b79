"""The tables of docs/recurrence.md say what the engine does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onebeat.core.recurrence import Cron
from tests.core.walking import runs

PAGE = (Path(__file__).parents[3] / "docs" / "recurrence.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([^`]+)` \| ([\w/]+) \| (\S+Z) \| (\S+Z(?:, \S+Z)*) \|$", PAGE, flags=re.MULTILINE)


def test_the_rows_are_found() -> None:
    assert len(ROWS) == 12


@pytest.mark.parametrize(("rule", "zone", "asked", "expected"), ROWS)
def test_a_row(rule: str, zone: str, asked: str, expected: str) -> None:
    found = expected.split(", ")
    assert runs(Cron.parse(rule, zone), asked, len(found)) == found
