"""docs/reference says what the docstrings say."""

from __future__ import annotations

import subprocess
import sys

from tests.processes import ROOT


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "docs/reference/build.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
