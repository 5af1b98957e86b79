"""The engine in a simulated world: seeded runs full of faults, each of which ends in the history checker.

ONEBEAT_SIMULATION_SEEDS says how many; `make simulate SEED=n` shows one of them step by step.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

SEEDS = int(os.environ.get("ONEBEAT_SIMULATION_SEEDS", "20"))


@pytest.mark.slow
@pytest.mark.timeout(300 + SEEDS)
def test_no_promise_breaks_in_any_run() -> None:
    """In a process of its own, whose clock is the simulation's. A bad run says which seed shows it again."""
    command = [sys.executable, "-m", "tests.proof.simulation", "1", str(SEEDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    print(done.stdout)
