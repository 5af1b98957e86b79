"""Every public name of django-celery-beat 2.9 is there under the alias and takes the same arguments, or is named."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from typing import Any

import pytest

from tests.compat.names.exceptions import GONE, OTHERWISE
from tests.compat.names.walk import PACKAGE, describe
from tests.compat.record_names import NAMES, PAGE, page

RECORD: dict[str, Any] = json.loads(NAMES.read_text())
_MISSING = object()


def find(path: str) -> Any:
    """The object behind a name of the record; a class's member as it stands in the class."""
    module, *names = path.split(".")
    if path in ("__version__",) or module not in {
        "admin",
        "apps",
        "clockedschedule",
        "models",
        "querysets",
        "schedulers",
        "signals",
        "tzcrontab",
        "utils",
        "validators",
    }:
        module, names = "", path.split(".")  # fmt: skip
    elif not names:
        return import_module(f"{PACKAGE}.{module}")
    found: Any = import_module(f"{PACKAGE}.{module}".rstrip("."))
    for name in names:
        found = found.get(name, _MISSING) if isinstance(found, dict) else inspect.getattr_static(found, name, _MISSING)
        if found is _MISSING:
            return _MISSING
    return found


def fault(theirs: dict[str, Any], ours: Any) -> str:
    """What is not as it was; empty if nothing is."""
    if ours is _MISSING:
        return "it is not there"
    mine = describe(ours)
    if theirs["is"] == "key":
        return ""
    if theirs["is"] in ("class", "module", "str", "int", "tuple", "list", "dict", "set"):
        return "" if mine["is"] == theirs["is"] else f"it is a {mine['is']}, and was a {theirs['is']}"
    if theirs.get("takes") is None or mine.get("takes") is None:
        callables = {"function", "classmethod", "staticmethod", "callable", "class"}
        return "" if (theirs["is"] in callables) == (mine["is"] in callables) else f"it is a {mine['is']}"
    if (theirs["is"] == "function") != (mine["is"] == "function"):
        return f"it is a {mine['is']}"
    return arguments(theirs["takes"], mine["takes"])


def arguments(theirs: list[Any], ours: list[Any]) -> str:
    """Whether every call that was right still is."""
    any_name = any(kind == "VAR_KEYWORD" for _, kind, _ in ours)
    any_place = any(kind == "VAR_POSITIONAL" for _, kind, _ in ours)
    named = [name for name, kind, _ in ours if kind in ("POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY")]
    placed = [name for name, kind, _ in ours if kind.startswith("POSITIONAL")]
    for place, (name, kind, _) in enumerate(theirs):
        if kind == "VAR_KEYWORD" and not any_name:
            return f"it does not take **{name}"
        if kind == "VAR_POSITIONAL" and not any_place:
            return f"it does not take *{name}"
        if kind != "POSITIONAL_OR_KEYWORD" or name in ("self", "cls"):
            continue
        if name not in named and not any_name:
            return f"it does not take {name}="
        if place >= len(placed) and not any_place:
            return f"{name} cannot be given by its place"
        if place < len(placed) and placed[place] != name and name in placed:
            return f"{name} has another place"
    theirs_names = {name for name, _, _ in theirs}
    more = [name for name, kind, default in ours if not default and not kind.startswith("VAR")
            and name not in theirs_names and name not in ("self", "cls", "kind")]  # fmt: skip
    return f"it asks for {more}" if more else ""


def test_every_name_is_there_or_named_with_a_reason() -> None:
    found = {name: what for name, theirs in RECORD.items() if (what := fault(theirs, find(name)))}
    assert {name: what for name, what in found.items() if name not in {**GONE, **OTHERWISE}} == {}
    # An exception that has been put right, or is none, is taken out.
    assert [name for name in GONE if name not in RECORD or find(name) is not _MISSING] == []
    assert [name for name in OTHERWISE if name not in RECORD or find(name) is _MISSING] == []


def test_the_page_names_the_exceptions() -> None:
    assert PAGE.read_text() == page(), "python -m tests.compat.record_names writes it"


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        ("a, b=1", "a, b=2", ""),
        ("a, b", "b, a", "another place"),
        ("a, b", "a, *, b", "by its place"),
        ("a, b", "a", "does not take b"),
        ("a", "a, b", "asks for"),
        ("a, **kw", "a", "**kw"),
        ("a, b", "*args, **kwargs", ""),
    ],
)
def test_the_comparison_sees(theirs: str, ours: str, words: str) -> None:
    made = [describe(eval(f"lambda {text}: None"))["takes"] for text in (theirs, ours)]
    assert words in arguments(*made) and bool(words) == bool(arguments(*made))
