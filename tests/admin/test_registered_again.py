"""The admin where a project has registered django-celery-beat's models in its own way: no page of any site fails, links
stay on the site at hand, and nobody else's pages look like ours.
"""

from __future__ import annotations

import pytest

from tests import services
from tests.admin import recipes
from tests.processes import run_python
from tests.scratch import Scratch, Templates

#: Each recipe: whether unfold is installed with it, and whether its page of a task is ours.
RECIPES = {
    "unfold_recipe": (True, False),
    "subclass": (False, False),
    "subclass_of_ours": (True, True),
    "plain": (False, False),
    "not_registered": (False, False),
    "own_site": (False, True),
    "own_site_without_tasks": (False, False),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_page_works_however_the_models_are_registered(templates: Templates, recipe: str) -> None:
    unfold, ours = RECIPES[recipe]
    if unfold:
        pytest.importorskip("unfold")
    kind = services.database("sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        env = {**scratch.env, **({"ONEBEAT_TEST_THEME": "unfold"} if unfold else {})}
        found = run_python(env, recipes.crawl, recipe)
    assert found["faults"] == []
    assert found["ours"] == ours
    mine = {page for page in found["banner"] if page.split()[0] not in ("Occurrence", "TaskState", "Beat", "Action")}
    if recipe in ("unfold_recipe", "plain", "not_registered", "own_site_without_tasks"):
        assert mine == set(), "the pages of others are as they would be without us"
