"""From the real django-celery-beat of several releases to onebeat and back, on real databases and a real broker."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests import services
from tests.scratch import Post, Scratch
from tests.takeover.releases import environments, story
from tests.takeover.releases.conftest import Ask
from tests.takeover.releases.project import COLUMNS, Project

#: What runs each time, in about a minute: the oldest release and the newest, times with and without zones.
OLDEST_AND_NEWEST = [("2.0", "postgresql", True), ("2.9", "mariadb", False)]
#: ONEBEAT_TEST_RELEASES=few, or ONEBEAT_TEST_ALL=1: every release on one database, the last one on all.
FEW = [
    *OLDEST_AND_NEWEST,
    ("2.2", "postgresql", False),
    ("2.5", "postgresql", True),
    ("2.9", "postgresql", True),
    ("2.9", "sqlite", True),
]
#: `make test-releases`.
ALL = list(itertools.product(environments.RELEASES, services.DATABASES, (True, False)))
CHOSEN = os.environ.get("ONEBEAT_TEST_RELEASES") or ("few" if os.environ.get("ONEBEAT_TEST_ALL") == "1" else "")
CELLS = {"all": ALL, "few": FEW}.get(CHOSEN, OLDEST_AND_NEWEST)


@pytest.fixture(params=CELLS, ids=[f"{r}-{db}-{'zones' if tz else 'naive'}" for r, db, tz in CELLS])
def cell(request: pytest.FixtureRequest, python_of: Ask, redis: services.Broker) -> Iterator[tuple[str, bool, Project]]:
    """(release, USE_TZ, the project on a database of its own)"""
    release, database, use_tz = request.param
    try:
        kind = services.database(database)
    except services.Missing as reason:
        pytest.skip(f"NOT RUN: {reason}")
    python = python_of(release)
    with Scratch.open(kind) as scratch, Post.open(redis) as post:
        yield release, use_tz, Project(scratch, post, python, use_tz=use_tz)


def test_there_and_back(cell: tuple[str, bool, Project]) -> None:
    release, use_tz, project = cell
    _, _, beliefs, crontabs, rights = project.before(
        ("manage", 0, "migrate", "--verbosity=0"), ("fill",), ("beliefs",), ("crontabs",), ("rights",)
    )
    tasks, clients, before = project.tasks(), project.clients(), project.crontabs()

    _, again, plans, readings, rights_after, pages = project.onebeat(
        ("manage", 0, "migrate", "--verbosity=0"),
        ("manage", 0, "makemigrations", "--check", "--dry-run"),
        ("plans",),
        ("readings",),
        ("rights",),
        ("pages", 1),
    )
    assert again == "No changes detected\n"
    assert project.counts() == story.LEFT
    assert without_spelling(project.tasks()) == without_spelling(tasks)
    assert without_spelling(project.clients()) == without_spelling(clients)
    assert rights_after["keeper"] == rights["keeper"]
    assert rights["keys"].items() <= rights_after["keys"].items()
    assert {page: status for page, status in pages.items() if status != 200} == CLOSED

    assert {name: plans[name][0] or "" for name in beliefs} == story.PLAN
    different = {name for name, belief in beliefs.items() if not agree(plans[name][0] or "", belief)}
    assert different == differences(release, use_tz)
    for key, row in project.crontabs().items():
        # Without zones, Celery's crontabs are all in the zone of the app.
        if use_tz or row.endswith("Europe/Berlin"):
            theirs, ours = story.CLOCK_CHANGES.get(row, crontabs[key]), readings[key]
            if release < "2.5":  # across a change of the clocks pytz is an hour off, until the change has come
                theirs, ours = theirs[:1], ours[:1] if isinstance(ours, list) else ours
            assert ours == theirs or (isinstance(ours, str) and "Error" in theirs[0]), row
    assert story.CLOCK_CHANGES.keys() <= set(before.values())

    edited, counted, told, *_ = project.onebeat(
        ("edit", "onebeat", 0),
        ("beat", 0, 9.5),
        ("manage", 9.5, "onebeat", "handback", "--json"),
        *way_back(release),
    )
    sent = {name: [time[5:19].replace("T", " ") for time in times] for name, times in project.sent().items()}
    assert sent == story.SENT
    assert edited == ["onebeat, kept", "onebeat, once"]
    assert {name: counted[name] - tasks[name][COUNT] for name in sent if name in tasks} == {
        name: len(times) for name, times in sent.items() if name in tasks
    }

    told = json.loads(told)
    assert told["tasks"] == len(project.tasks())
    assert {one["name"] for one in told["wrong"]} == (set() if use_tz else story.WRONG_THERE)
    pages, edited, _ = project.before(("pages", 5), ("edit", "back", 9.5), ("beat", 9.5, 31))
    assert {page: status for page, status in pages.items() if status != 200} == CLOSED
    assert edited == ["back, kept", "back, once"]
    unlike = not_counted(release, use_tz)
    counts = {name: len(times) for name, times in project.sent().items()}
    assert {name: n for name, n in counts.items() if name not in unlike} == {
        name: n for name, n in story.BACK.items() if name not in unlike
    }


def way_back(release: str) -> list[Any]:
    """The code of the oldest cannot run on the tables of later ones; the others' can, whatever lies beside them."""
    own = environments.RELEASES[release].migration
    return [("manage", 9.5, "migrate", "--verbosity=0", "django_celery_beat", own)] if release < "2.5" else []


#: Where the keeper may not look.
CLOSED = {f"keeper: {kind}schedule": 403 for kind in ("interval", "crontab", "solar")}
COUNT = COLUMNS.index("total_run_count")


def agree(planned: str, belief: Any) -> bool:
    """Whether django-celery-beat says the same: due now, or the same next run, or none."""
    due, following = belief
    return "" < planned <= story.NOW if due else planned == (following or "")


def differences(release: str, use_tz: bool) -> set[str]:
    """The tasks of which django-celery-beat says something else."""
    found = story.FROM_LAST_CHANGE if release < "2.6" or not use_tz else set()
    if not use_tz:
        return found | story.TAKEN_FOR_UTC | story.ZONES_FORGOTTEN
    return found if release < "2.6" else found | story.MESSAGE_ENDS


def not_counted(release: str, use_tz: bool) -> set[str]:
    """Tasks that django-celery-beat itself treats otherwise after the way back than others of it do."""
    found = story.MESSAGE_ENDS if release < "2.6" or not use_tz else set()
    return found if use_tz else found | {"back, once"} | story.FROM_LAST_CHANGE


def without_spelling(rows: Any) -> str:
    text = repr(rows)
    for before, after in story.SPELLED.items():
        text = text.replace(repr(tuple(before.split()))[1:-1], repr(tuple(after.split()))[1:-1])
    return text
