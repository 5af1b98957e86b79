"""docs/delivery.md names tests and findings that are there."""

from __future__ import annotations

import re

from tests.processes import ROOT
from tests.proof.history import Kind

PAGE = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")


def test_what_holds_each_promise_is_there() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(rows) == 9
    for row in rows:
        # A bare file name is in the folder of the one before it.
        folder, named = ROOT, re.findall(r"`((?:tests/)?[\w/]+(?:\.py)?)`", row.rsplit("|", 2)[1])
        assert named or "finding" in row, row
        for name in named:
            path = ROOT / name if name.startswith("tests/") else folder / name
            assert path.exists(), f"{name} in {row}"
            folder = path.parent


def test_the_findings_it_names_exist() -> None:
    named = {
        name
        for text in re.findall(r"findings? ((?:\"[^\"]+\"(?: and )?)+)", PAGE)
        for name in re.findall('"([^"]+)"', text)
    }
    assert named and named <= {str(kind) for kind in Kind}
