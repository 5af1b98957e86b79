"""The engine in a simulated world: seeded runs full of faults, each of which ends in the history checker.

ONEBEAT_SIMULATION_SEEDS says how many; `make simulate SEED=n` shows one of them step by step.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

#: What takes less than a minute of one core; thousands where there is time for them.
SEEDS = int(os.environ.get("ONEBEAT_SIMULATION_SEEDS") or (4000 if os.environ.get("ONEBEAT_TEST_ALL") else 600))
#: Each takes its part of the seeds.
PROCESSES = 2


def _python(*arguments: str) -> subprocess.Popen[str]:
    """A process of its own, whose clock is the simulation's."""
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _finished(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


@pytest.mark.slow
@pytest.mark.timeout(300 + SEEDS)
def test_no_promise_breaks_in_any_run() -> None:
    """A bad run says which seed shows it again."""
    part = -(-SEEDS // PROCESSES)
    started = [
        _python("-m", "tests.proof.simulation", str(1 + part * number), str(part)) for number in range(PROCESSES)
    ]
    print(*map(_finished, started), sep="\n")


def test_a_seed_replays_exactly() -> None:
    """The same story, word for word, in another process: else a printed seed would be worth nothing."""
    first, again = (_python("-m", "tests.proof.simulation", "7") for _ in range(2))
    said = _finished(first)
    assert "message of" in said
    assert said == _finished(again)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_each_mutant_of_the_engine_is_found_out() -> None:
    """A simulation that finds nothing in a broken engine would prove nothing about the sound one."""
    print(_finished(_python("-m", "tests.proof.mutants")))
