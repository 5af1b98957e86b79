"""Other people's packages on a project that goes to onebeat and back; the page that tells of them is true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import services
from tests.clients import __main__ as clients
from tests.clients import recipe as recipes
from tests.clients import story
from tests.processes import ROOT
from tests.takeover.releases import environments

ALL = recipes.every()


def went(recipe: recipes.Recipe, folder: Path) -> None:
    try:
        result = story.tell(recipe, folder)
    except (environments.NotHere, services.Missing) as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT RUN: {reason}")
    assert result.faults == dict.fromkeys(story.PLACES, "")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [recipe.name for recipe in ALL if recipe.quick])
def test_small_ones_go_there_and_back(name: str, tmp_path: Path) -> None:
    went(recipes.named(name), tmp_path / "client")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [recipe.name for recipe in ALL if not recipe.quick])
def test_large_ones_go_there_and_back(name: str, tmp_path: Path) -> None:
    went(recipes.named(name), tmp_path / "client")


def test_the_page_has_the_table_of_the_recipes() -> None:
    page = (ROOT / "docs/clients.md").read_text()
    assert clients.table([recipe.row for recipe in ALL]) in page
