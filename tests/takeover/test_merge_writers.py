"""Four old workers insert duplicates and tasks while the database is migrated: none of them loses anything."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes import eventually, processes
from tests.scratch import Scratch
from tests.takeover import writers
from tests.takeover.old import PREFIX, Old


@pytest.mark.concurrency
def test_old_workers_may_write_through_the_merge(blank_database: Scratch, tmp_path: Path) -> None:
    if blank_database.vendor == "sqlite":
        pytest.skip("one writer at a time")
    old, stop = Old(blank_database), tmp_path / "stop"
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(processes, 4, blank_database.env, writers.write, str(stop))
        try:
            eventually(
                lambda: work.done() or len(old.keys("clockedschedule")) > 500, 60, "duplicates from four workers"
            )
            import subprocess, sys; from tests.processes import environment, ROOT; subprocess.run([sys.executable, "-m", "tests.project.manage", "migrate", "--verbosity=0"], env=environment(old.scratch.env), cwd=ROOT, check=True)
        finally:
            stop.touch()
        outcomes = work.result()
    failed = [outcome.error for outcome in outcomes if outcome.error]
    if failed:
        print(old.run("SHOW ENGINE INNODB STATUS")[0][2][:12000])
    assert not failed, "\n".join(failed)
    written = {name: text for outcome in outcomes for name, text in outcome.value["written"].items()}
    errors = [outcome.value["errors"] for outcome in outcomes]
    print(len(written), errors, flush=True)
    found = dict(
        old.run(
            f"SELECT name, clocked_time FROM {PREFIX}periodictask t "
            f"JOIN {PREFIX}clockedschedule c ON c.id = t.clocked_id"
        )
    )
    assert {name: str(time)[:19] for name, time in found.items()} == written
    times = [time for (time,) in old.run(f"SELECT clocked_time FROM {PREFIX}clockedschedule")]
    assert len(times) == len(set(times)) == len(writers.INSTANTS)
