"""What every client goes through: built with django-celery-beat, then to onebeat, edited there, and back.

From the same database twice: with both distributions installed, and with onebeat alone until the old beat is needed
again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests import services
from tests.clients import places
from tests.clients.project import LINE, Project
from tests.clients.recipe import Recipe
from tests.processes import eventually

#: How long a beat may take for what it has to do, in seconds.
LIMIT = 240
PLACES = ("both installed", "ours alone")


@dataclass
class Result:
    """What came of a client."""

    recipe: Recipe
    #: For each place, "" or what went wrong.
    faults: dict[str, str] = field(default_factory=dict)
    #: How many of its own tests passed, for each place, django-celery-beat's first.
    own: list[int] = field(default_factory=list)
    seconds: float = 0


def tell(recipe: Recipe, folder: Path) -> Result:
    """Run the whole story in this folder. Raises `environments.NotHere` or `services.Missing` with the reason."""
    python = places.python_of(recipe)
    old, new = places.old_one(python), places.new_one()
    started, result = time.monotonic(), Result(recipe)
    first = Project(recipe, folder / "old", python, [old])
    if recipe.database != "sqlite":
        first.database = services.database(recipe.database).create_database()
    opened = [first]
    try:
        shown = built(first)
        passed = own_tests(first, folder / "sources")
        for place, after in ((PLACES[0], [new, old]), (PLACES[1], [new])):
            project = first.copy(folder / place.replace(" ", "-"), after)
            opened.append(project)
            try:
                there_and_back(project, old, shown)
                now = own_tests(project, folder / "sources")
                assert passed.failed >= now.failed, f"its own tests: {sorted(now.failed - passed.failed)} {now.printed}"
                assert passed.count <= now.count, f"its own tests: {now.count} of {passed.count} passed {now.printed}"
                result.own.append(now.count)
                result.faults[place] = ""
            except AssertionError as error:
                result.faults[place] = str(error)
    finally:
        for project in opened:
            project.drop()
    result.seconds = time.monotonic() - started
    return result


def built(project: Project) -> object:
    """The project under django-celery-beat. Returns what its client shows."""
    project.folder.mkdir(parents=True)
    if project.recipe.start:
        project.run(project.recipe.start, cwd=project.folder)
    project.write()
    if project.recipe.prepare:
        project.run(project.recipe.prepare)
    project.run(project.recipe.migrate)
    project.call("build")
    project.beat(project.recipe.beat, partial(comes, "before"))
    return project.call("look")


def there_and_back(project: Project, old: Path, shown: object) -> None:
    """The switch, an edit while a scheduler runs, and the way back."""
    recipe = project.recipe
    project.write(top=recipe.top, line=LINE if recipe.top else recipe.line)
    for command in recipe.there:
        project.run(command)
    assert (now := project.call("look")) == shown, f"shows {now} and showed {shown}"

    def edited(sent: Callable[[], list[str]]) -> None:
        comes("before", sent)
        project.call("edit")
        # Twice: time in which the one that was switched off would have come too.
        comes("after", sent, 2)

    sent = project.beat(recipe.beat, edited)
    assert "before" not in sent[sent.index("after") :], f"still sent after the edit: {sent}"
    changed = project.call("look")
    for command in recipe.back:
        project.run(command)

    project.place = [old]
    project.write(line=LINE)
    assert (now := project.call("look")) == changed, f"shows {now} after the way back, and showed {changed}"
    sent = project.beat(recipe.beat, partial(comes, "after"))
    assert "before" not in sent, f"sent after the way back: {sent}"


def comes(name: str, sent: Callable[[], list[str]], times: int = 1) -> None:
    """Wait for messages of this task."""
    eventually(lambda: sent().count(name) >= times, LIMIT, f"a message of {name!r}")


@dataclass(frozen=True)
class Own:
    """How a client's own tests went."""

    count: int = 0
    failed: frozenset[str] = frozenset()
    printed: str = ""


def own_tests(project: Project, folder: Path) -> Own:
    """Run the client's own tests, if it has any here, in its unpacked sources."""
    if not project.recipe.own_tests:
        return Own()
    if not folder.exists():
        folder.mkdir()
        places.sources(project.recipe, folder)
    (unpacked,) = folder.iterdir()
    printed = project.run(project.recipe.own_tests, cwd=unpacked, may_fail=True)
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", printed, re.M)) | set(
        re.findall(r"^(?:FAIL|ERROR): (.+)", printed, re.M)
    )
    ran = re.search(r"^Ran (\d+) tests", printed, re.M)
    passed = re.search(r"(\d+) passed", printed)
    count = int(ran[1]) - len(failed) if ran else int(passed[1]) if passed else 0
    assert count, f"its own tests did not run: {printed[-3000:]}"
    return Own(count, frozenset(failed), printed[-3000:])
