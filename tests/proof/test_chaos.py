"""A few cells of `make chaos`, side by side: real faults on real processes, each cell judged by the history checker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import services
from tests.engine.fleet import Place, Spawn
from tests.proof.chaos import side_by_side
from tests.proof.scripts import SCRIPTS
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

CELLS = {
    "killed at each point": Place("sqlite", "redis", 1),
    "killed at random": Place("postgresql", "redis", 3),
    "COMMIT reply lost": Place("mariadb", "rabbitmq", 1),
    "clocks go forward": Place("postgresql", "rabbitmq", 1),
}


def test_promises_hold_while_things_break(templates: Templates, spawn: Spawn, tmp_path: Path) -> None:
    here = {each.name for each in [*services.databases(), *services.brokers()]}
    named = {script.name: script for script in SCRIPTS}
    todo = [(named[name], place) for name, place in CELLS.items() if {place.database, place.broker} <= here]
    if not todo:
        pytest.skip("none of these databases and brokers is here")
    verdicts = list(side_by_side(todo, templates, spawn, tmp_path))
    print(*verdicts, sep="\n")
    assert not [(one.place, one.fault, *map(str, one.findings)) for one in verdicts if one.broken]
    assert all(one.faults and one.expected for one in verdicts), "something went wrong, and something was sent"
    # Nothing would test the guard if no copy ever came: a process that dies with messages unrecorded sends them again.
    assert sum(one.copies for one in verdicts)
