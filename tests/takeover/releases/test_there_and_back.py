"""From the real django-celery-beat of several releases to onebeat and back, on real databases and a real broker."""

from __future__ import annotations

import collections
import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests import services
from tests.scratch import Post, Scratch
from tests.takeover.releases import environments, story
from tests.takeover.releases.project import Project

#: What runs each time: every release on one database, the last one on all, times with and without zones.
FEW = [
    ("2.0", "postgresql", True),
    ("2.2", "postgresql", False),
    ("2.5", "postgresql", True),
    ("2.9", "postgresql", True),
    ("2.9", "mariadb", False),
    ("2.9", "sqlite", True),
]
ALL = list(itertools.product(environments.RELEASES, services.DATABASES, (True, False)))
CELLS = ALL if os.environ.get("ONEBEAT_TEST_RELEASES") == "all" else FEW


@pytest.fixture(params=CELLS, ids=[f"{r}-{db}-{'zones' if tz else 'naive'}" for r, db, tz in CELLS])
def cell(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool, Project]]:
    """(release, USE_TZ, the project on a database of its own)"""
    release, database, use_tz = request.param
    try:
        python, kind = environments.python_of(release), services.database(database)
        broker = services.Broker("redis", services.url_of("redis"))
    except (environments.NotHere, services.Missing) as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT RUN: {reason}")
    with Scratch.open(kind) as scratch, Post.open(broker) as post:
        yield release, use_tz, Project(scratch, post, python, use_tz=use_tz)


def test_there_and_back(cell: tuple[str, bool, Project]) -> None:
    release, use_tz, project = cell
    _, _, beliefs, crontabs, rights = project.before(
        ("manage", "migrate", "--verbosity=0"), ("fill",), ("beliefs",), ("crontabs",), ("rights",)
    )
    tasks, clients = project.tasks(), project.clients()
    _, plans, recurrences, rights_after, pages, edited, _ = project.onebeat(
        ("manage", "migrate", "--verbosity=0"),
        ("plans",),
        ("recurrences",),
        ("rights",),
        ("pages",),
        ("edit", "onebeat", 0),
        ("beat", 0, 9.5),
    )
    after = project.tasks()
    print("PLAN", {n: (plans[n], b) for n, b in beliefs.items() if not agrees(plans[n][0], b)})
    print("CRON", [(c, recurrences[k], crontabs[k]) for k, c in cron(project).items() if recurrences[k] != crontabs[k]])
    print("TASK", {n: (row, after[n]) for n, row in tasks.items() if row != after[n]})
    print("CLIENTS", clients == project.clients(), project.counts())
    print("RIGHTS", rights["keeper"] == rights_after["keeper"], rights["keys"].items() <= rights_after["keys"].items())
    print("PAGES", {n: r for n, r in pages.items() if r != 200})
    print("SENT", project.sent())
    print(edited)
    back = project.before(("pages",), ("edit", "back", 9.5), ("beat", 9.5, 31))
    print("PAGES", {n: r for n, r in back[0].items() if r != 200})
    print(back[1])
    print("SENT", collections.Counter(project.sent()))


def agrees(planned: str | None, belief: Any) -> bool:
    due, following = belief
    return planned is not None and planned <= story.NOW if due else planned == following


def cron(project: Project) -> dict[str, str]:
    return {str(k): " ".join(v) for k, *v in project.rows("SELECT id, minute, hour, day_of_month, month_of_year, day_of_week, timezone FROM django_celery_beat_crontabschedule")}
