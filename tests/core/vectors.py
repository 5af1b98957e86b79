"""The golden vectors, worked out before there was an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def vectors(name: str) -> list[dict[str, Any]]:
    text = (Path(__file__).parent / "golden" / f"{name}.json").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)["vectors"]
    return found
