"""What keeps the house a house: which way imports point, how large things are, and one name for each thing."""

from __future__ import annotations

import re

import pytest

from tests import house

FIGURES = {what: (figure, limit, where) for what, figure, limit, where in house.figures()}


@pytest.mark.parametrize("what", FIGURES)
def test_a_figure_is_within_its_limit(what: str) -> None:
    figure, limit, where = FIGURES[what]
    assert figure <= limit, "\n".join([f"{what}: {figure}, at most {limit}", *where])


def test_a_circle_is_found_wherever_the_import_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: house.Path) -> None:
    texts = {
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from onebeat import b\n",
        "b": "def f():\n    import onebeat.c\n",
        "c": "from onebeat.a import x\n",
        "d": "from onebeat import a\n",
    }
    (tmp_path / "onebeat").mkdir()
    monkeypatch.setattr(house, "SRC", tmp_path)
    for name, text in texts.items():
        (tmp_path / "onebeat" / f"{name}.py").write_text(text)
    found = [house.Module(tmp_path / "onebeat" / f"{name}.py") for name in texts]
    monkeypatch.setattr(house, "modules", lambda: found)
    monkeypatch.setattr(house, "by_name", lambda: {module.name: module for module in found})
    assert house.circles() == [["onebeat.a", "onebeat.b", "onebeat.c"]]


def test_the_glossary_names_what_is_in_the_code() -> None:
    names = {name for module in house.modules() for name, _ in house.names_of(module)}
    names |= {part for module in house.modules() for part in module.name.split(".")}
    assert [word for term in house.terms() for word in term.code if word not in names] == []
    assert [term.name for term in house.terms() if not term.code or len(term.meaning) < 10] == []


def test_every_term_stands_once_and_no_word_is_both_kept_and_given_up() -> None:
    terms = house.terms()
    kept = [term.name for term in terms]
    gone = [word for term in terms for word in term.given_up + term.given_up_as_names]
    assert len(kept) == len(set(kept)) and len(gone) == len(set(gone))
    assert not set(gone) & {*kept, *(word for term in terms for word in term.code)}


def test_every_page_is_found_from_the_readme_or_a_page_that_is() -> None:
    pages = {path.name: path.read_text() for path in (house.ROOT / "docs").glob("*.md")}
    found: set[str] = set()
    texts = [(house.ROOT / "README.md").read_text()]
    while texts:
        links = set(re.findall(r"\]\((?:docs/)?([a-z-]+\.md)[)#]", texts.pop())) & pages.keys()
        texts += [pages[name] for name in links - found]
        found |= links
    assert sorted(pages.keys() - found) == []
