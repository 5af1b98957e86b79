"""JSON text of what a caller gave, or the place in it that JSON cannot hold."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

from onebeat.errors import NotJSON

#: What to pass instead.
_INSTEAD = (
    ((Decimal, UUID, timedelta), "pass str(...) of it"),
    ((datetime, date, time), "pass its isoformat()"),
    ((bytes, bytearray, memoryview), "pass text, for example base64"),
    ((set, frozenset), "pass a list"),
)
_SHOWN = 60


def encode(name: str, value: object) -> str:
    """`value`, the argument called `name`, as JSON text that reads back as the same value (a tuple as a list).

    Raises `NotJSON` with the path of the first part that JSON cannot hold.
    """
    _check(name, value, ())
    return json.dumps(value)


def _check(path: str, value: object, outer: tuple[int, ...]) -> None:
    if value is None or isinstance(value, bool | int | str):
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJSON(path, f"{value} is no JSON number")
        return
    if id(value) in outer:
        raise NotJSON(path, "it contains itself")
    if len(outer) > 200:
        raise NotJSON(path, "it is nested too deeply")
    inner = (*outer, id(value))
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                raise NotJSON(
                    f"{path}[{key!r}]", f"a key must be text, not {type(key).__name__}: workers would get text"
                )
            _check(f"{path}[{json.dumps(key, ensure_ascii=False)}]", part, inner)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _check(f"{path}[{number}]", part, inner)
    else:
        raise NotJSON(path, f"JSON cannot hold the {type(value).__name__} {_shown(value)}: {_instead(value)}")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        return ""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _instead(value: object) -> str:
    if hasattr(value, "pk"):
        return "pass its pk, and read the row in the task"
    return next((words for kinds, words in _INSTEAD if isinstance(value, kinds)), "pass what JSON has: text, a number")
