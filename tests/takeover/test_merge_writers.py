"""Four old workers insert duplicates and tasks while the database is migrated: none of them loses anything."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.processes import eventually, processes
from tests.takeover import writers
from tests.takeover.old import PREFIX, Old, old, old_templates

__all__ = ["old", "old_templates"]


@pytest.mark.concurrency
@pytest.mark.slow
def test_old_workers_may_write_through_the_merge(old: Old, tmp_path: Path) -> None:
    if old.scratch.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    stop = tmp_path / "stop"
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(processes, 4, old.scratch.env, writers.write, str(stop))
        try:
            eventually(
                lambda: work.done() or len(old.keys("clockedschedule")) > 300, 60, "duplicates from four workers"
            )
            old.migrate()
        finally:
            stop.touch()
        outcomes = work.result()
    # The one error that a worker may meet, a row that was merged between its look and its insert, is counted.
    failed = [outcome.error for outcome in outcomes if outcome.error]
    assert not failed, "\n".join(failed)
    written = {name: text for outcome in outcomes for name, text in outcome.value["written"].items()}
    refused = sum(outcome.value["refused"] for outcome in outcomes)
    assert refused < len(written) / 10
    found = dict(
        old.run(
            f"SELECT name, clocked_time FROM {PREFIX}periodictask t "
            f"JOIN {PREFIX}clockedschedule c ON c.id = t.clocked_id"
        )
    )
    assert {name: str(time)[:19] for name, time in found.items()} == written
    times = [time for (time,) in old.run(f"SELECT clocked_time FROM {PREFIX}clockedschedule")]
    assert len(times) == len(set(times)) == len(writers.INSTANTS)
    print(f"{len(written)} tasks written, {refused} refused")
