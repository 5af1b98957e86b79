"""Run the simulation: `python -m tests.proof.simulation FIRST COUNT`, or `... SEED` to see one run step by step."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def in_memory() -> Iterator[None]:
    """A database for this process, before Django is set up."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.project.settings"
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        # A file: a connection that is dropped must lose its transaction. It need not survive the machine.
        options = {"init_command": "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY"}
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder}/db", "OPTIONS": options}
        os.environ["ONEBEAT_TEST_DB"] = json.dumps(database)
        yield


def main(first: int, count: int | None) -> int:
    with in_memory():
        return _simulate(first, count)


def _simulate(first: int, count: int | None) -> int:
    from tests.proof.simulation import seeds

    if count is None:
        logging.basicConfig(format="          %(message)s", level=logging.INFO)
        found, story = seeds.replay(first)
        print(*story, *(f"FOUND {one}" for one in found), sep="\n")
        return bool(found)
    began = time.monotonic()
    bad = seeds.run(first, count)
    took = f"{time.monotonic() - began:.1f} s ({time.process_time():.1f} s of one core)"
    print(f"{count} runs in {took}, {len(bad)} of them bad", *bad, sep="\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
