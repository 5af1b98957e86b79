"""Four workers of django-celery-beat 2.9 insert duplicates and tasks while the database is migrated: none of them loses
anything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import eventually
from tests.scratch import Scratch
from tests.takeover.old import PREFIX
from tests.takeover.releases.conftest import Ask
from tests.takeover.releases.project import Project

INSTANTS = 20


@pytest.mark.concurrency
@pytest.mark.slow
@pytest.mark.long("mariadb")
def test_old_workers_may_write_through_the_merge(blank_database: Scratch, python_of: Ask, tmp_path: Path) -> None:
    if blank_database.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    project = Project(blank_database, None, python_of("2.9"), use_tz=True)
    project.before(("manage", 0, "migrate", "--verbosity=0"))
    stop = tmp_path / "stop"
    writers = [project.start_before(("write", index, str(stop))) for index in range(4)]
    at_work = f"SELECT COUNT(DISTINCT SUBSTR(name, 1, 1)) FROM {PREFIX}periodictask"
    try:
        eventually(
            lambda: (
                any(one.poll() is not None for one in writers)
                or (project.rows(at_work) == [(4,)] and project.counts()["clocked"] > 3 * INSTANTS)
            ),
            120,
            "duplicates from four workers",
        )
        before = project.counts()["clocked"]
        project.onebeat(("manage", 0, "migrate", "--verbosity=0"))
    finally:
        stop.touch()
    # What a worker may meet is counted: a row that was merged between its look and its insert, and on a machine so busy
    # that the lock cannot be had without waiting, a deadlock.
    outcomes = [project.answers(one)[0] for one in writers]
    written = {name: instant for outcome in outcomes for name, instant in outcome["written"].items()}
    refused = sum(outcome["refused"] for outcome in outcomes)
    assert refused < len(written) / 10
    found = project.rows(
        f"SELECT name, clocked_time FROM {PREFIX}periodictask t "
        f"JOIN {PREFIX}clockedschedule c ON c.id = t.clocked_id WHERE task = 'legacy.written'"
    )
    assert {name: str(time.second) for name, time in found} == written
    assert before > INSTANTS == project.counts()["clocked"]
    print(f"{before} rows before, {len(written)} tasks written, {refused} refused")
