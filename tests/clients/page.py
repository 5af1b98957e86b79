"""The blocks of docs/switch.md that the recipes run: what the page says is what is tried."""

from __future__ import annotations

import re
from typing import Any

from tests.processes import ROOT

PAGE = ROOT / "docs/switch.md"


def section(title: str) -> dict[str, Any]:
    """What the section of this title says of the switch: the line of the settings, the commands there and back."""
    found = re.search(rf"^### {title}\n(.*?)(?=^##|\Z)", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert found, title
    (line,) = re.findall(r"```python\n(.*?)\n```", found[1], re.S)
    there, back = (tuple(block.splitlines()) for block in re.findall(r"```sh\n(.*?)\n```", found[1], re.S))
    return {"top" if line.startswith("import") else "line": line, "there": there, "back": back}
