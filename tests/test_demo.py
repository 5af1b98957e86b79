"""The demo: that it holds, that its verdict can be no, and that it leaves no process behind."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.processes import ROOT, eventually

DEMO = ROOT / "examples" / "demo"
RUN = [sys.executable, str(DEMO / "run.py"), "--small", "--folder"]
AT = datetime(2026, 3, 28, 9, tzinfo=UTC)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "ONEBEAT_"))}


@pytest.mark.slow
@pytest.mark.concurrency
@pytest.mark.skipif(os.environ.get("ONEBEAT_TEST_DEMO") == "0", reason="`make demo` is run by itself")
def test_every_promise_holds(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RUN, str(tmp_path)], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    race = [line.split() for line in lines[next(i for i, line in enumerate(lines) if "callers" in line) + 1 :][:4]]
    assert [row[1:] for row in race] == [["16", "1", "1", "1", "0"]] * 4
    total = next(line.split() for line in lines if line.startswith("  all "))
    expected, sent, run, lost, duplicates = map(int, total[1:6])
    assert expected == sent == run > 4 * 33
    assert (lost, duplicates) == (0, 0)
    assert "SIGKILL for" in done.stdout
    assert members(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc to see other processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_it(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "log"
    folder = tmp_path / "demo"
    with log.open("wb") as out:
        demo = subprocess.Popen([*RUN, str(folder)], env=environment(), stdout=out, stderr=out)
    try:
        eventually(lambda: "race to schedule" in log.read_text(), 60, "the race")
        assert len(members(folder)) > 4
        demo.send_signal(number)
        assert demo.wait(20) != 0
    finally:
        demo.kill()
    eventually(lambda: members(folder) == [], 20, "the end of every process")


def members(folder: Path) -> list[str]:
    """The processes whose environment names this folder as the demo's."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"DEMO_FOLDER={folder.resolve()}".encode() in variables:
            found.append(process.name)
    return found


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_report", DEMO / "report.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def occurrence(name: str, at: datetime, **values: Any) -> str:
    from onebeat.models import Occurrence

    key = uuid.uuid4()
    row = {"state": "sent", "sent_at": at, "decided_at": at, **values}
    Occurrence.objects.create(
        task_id=ord(name), task_uid=ord(name), task_name=name, due_at=at, celery_task_id=key, **row
    )
    return str(key)


@pytest.mark.django_db
def test_verdict(report: ModuleType) -> None:
    later = AT + timedelta(seconds=1)
    expected = report.Expected(AT, later, {"a": AT, "b": AT}, ["s"])
    a, b, s1, s2 = occurrence("a", AT), occurrence("b", AT), occurrence("s", AT), occurrence("s", later)
    after = occurrence("s", later + timedelta(seconds=1))
    good = [(a, ("a", AT)), (b, ("b", AT)), (s1, ("s", AT)), (s2, ("s", later)), (after, ("s", AT + 2 * (later - AT)))]

    def faults(*ran: Any, held: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
        return report.judge(expected, ran, held).faults  # type: ignore[no-any-return]

    assert faults(*good) == []
    assert faults(*good[1:]) == ["1 occurrences: lost"]
    assert faults(*good, good[0]) == ["1 occurrences: duplicates"]
    assert faults(*good, good[0], held={a}) == []
    assert faults(*good, ("another id", ("a", AT)), held={a}) == ["1 occurrences: duplicates"]
    assert faults(*good, (a, ("a", later)))[0].startswith("a has an occurrence at")


@pytest.mark.django_db
def test_verdict_on_a_skip(report: ModuleType) -> None:
    occurrence("a", AT, state="skipped", reason="missed", sent_at=None)
    outcome = report.judge(report.Expected(once={"a": AT}), [], set())
    assert outcome.faults == [f"a at {AT} was skipped: missed ", "1 occurrences: lost"]
