"""Every benchmark there is, one after the other: what `make bench` runs. Each runs by itself too, and has `--json`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = ("recurrence",)


def main() -> int:
    """Run them; the exit code is the number of those that failed."""
    here = Path(__file__).parent
    failed = 0
    for name in BENCHMARKS:
        print(f"-- {name}", flush=True)
        failed += subprocess.run([sys.executable, here / f"{name}.py"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
