"""Each text that people see is there in all the languages that django-celery-beat has."""

from __future__ import annotations

import ast
import gettext
import re
from functools import cache
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

from tests.processes import ROOT

SOURCE = ROOT / "src" / "onebeat"
LANGUAGES = ["de", "es", "fa", "fr", "ko", "ru", "zh_Hans"]
_CALLS = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy"}
_PLACE = re.compile(r"%\(\w+\)s|\{\w*\}")
#: Names of days and months, which Django's own catalogue has.
_DJANGOS = {f"%{letter}" for letter in "ab"}


def of_code(path: Path) -> set[str]:
    """The texts in the calls of one module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in _CALLS and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return found


def of_template(path: Path) -> set[str]:
    """The texts in the tags of one template, as Django's own extraction sees them."""
    quoted = r"(?:_|gettext|ngettext)\(\s*(u?'(?:[^'\\]|\\.)*'|u?\"(?:[^\"\\]|\\.)*\")"
    return {ast.literal_eval(text) for text in re.findall(quoted, templatize(path.read_text()))}


@cache
def visible() -> set[str]:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if "gettext" in path.read_text() or path.name == "describe.py":
            found |= of_code(path)
    for path in SOURCE.rglob("*.html"):
        found |= of_template(path)
    return found - _DJANGOS


def written(path: Path) -> dict[str, str]:
    """What a catalogue's source says, singular forms alone."""
    entry = re.compile(r'^msgid (".*")\n(?:msgid_plural ".*"\n)?msgstr(?:\[0\])? (".*")$', re.MULTILINE)
    return {
        ast.literal_eval(key): ast.literal_eval(text) for key, text in entry.findall(path.read_text()) if key != '""'
    }


def test_the_texts_are_found() -> None:
    found = visible()
    assert {"paused", "Run now", "Load to come", "every %(n)s minutes", "until %(time)s %(zone)s"} <= found
    assert len(found) > 300


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_text_is_translated(language: str) -> None:
    folder = SOURCE / "locale" / language / "LC_MESSAGES"
    with (folder / "django.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    source = written(folder / "django.po")

    def text(key: str) -> str:
        told = catalogue.ngettext(key, "", 1) if catalogue.gettext(key) == key else catalogue.gettext(key)
        return "" if told == key and not source.get(key) else told

    assert sorted(key for key in visible() if not text(key)) == []
    assert {key: text(key) for key in source if text(key) != source[key]} == {}, "django.mo is not of this django.po"
    places = {key: text(key) for key in source if set(_PLACE.findall(key)) != set(_PLACE.findall(text(key)))}
    assert places == {}, "a place that is filled in is missing, or misspelt"
