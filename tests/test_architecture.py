"""The page of the architecture names modules and functions that are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "onebeat"


def defined(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def test_every_module_that_it_names_is_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (SOURCE / name).exists()] == []


def test_every_function_that_it_names_is_in_its_module() -> None:
    rows = re.findall(r"\| `([\w/]+\.py)` \| `(\w+)` \|", PAGE)
    assert len(rows) > 15
    assert [row for row in rows if row[1] not in defined(SOURCE / row[0])] == []


def test_the_rooms_of_the_contract_are_on_the_page() -> None:
    contract = re.search(r"layers = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.S)
    assert contract
    rooms = set(re.findall(r"onebeat\.(\w+)", contract[1]))
    assert [room for room in sorted(rooms) if not re.search(rf"\b{room}\b", PAGE)] == []
