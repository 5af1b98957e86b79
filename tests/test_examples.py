"""The examples do what they say: each checks itself, and ends with what it saw."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

ENDS = {
    "follow_up.py": "asked: order 7, order 8",
    "reminder.py": "reminded: [1, 3]",
    "tenants.py": "tenant-3 has paid and has 10 reports",
}


def test_every_example_is_run() -> None:
    assert {file.name for file in (ROOT / "examples/verbs").glob("*.py")} == {*ENDS, "small.py"}


@pytest.mark.parametrize("name", ENDS)
def test_example(name: str) -> None:
    env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(
        [sys.executable, f"examples/verbs/{name}"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(ENDS[name])
