"""The liveness file: a scheduler that turns touches it, whether or not the database answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onebeat.engine.loop import Loop
from onebeat.engine.stop import Stop
from tests.engine.kit import Bench, sql


def test_it_is_touched_also_while_the_database_fails(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "alive"
    loop = Loop(Bench(bench.outbox, liveness_file=str(file)).engine, Stop())
    loop.tick()
    assert file.exists()
    sql("ALTER TABLE onebeat_change RENAME TO onebeat_elsewhere")
    try:
        os.utime(file, (0, 0))
        assert loop.tick() > 0
        assert file.stat().st_mtime > 0
    finally:
        sql("ALTER TABLE onebeat_elsewhere RENAME TO onebeat_change")
    loop.tick()
    loop.close()


def test_one_that_cannot_be_touched_is_said_once_and_stops_nothing(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = Loop(Bench(bench.outbox, liveness_file=str(tmp_path / "no" / "such" / "folder")).engine, Stop())
    for _ in range(3):
        loop.tick()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["liveness_file cannot be touched"]
    loop.close()
