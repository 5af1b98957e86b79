"""Records what the real django-celery-beat leaves in each database after each of its migrations.

    python -m tests.migrations.record_schema PYTHON

PYTHON is an interpreter that has django-celery-beat 2.9.0, psycopg and mysqlclient. The record goes to
tests/migrations/schema/, one file for each vendor; tests/migrations/test_schema.py compares ours with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.scratch import Scratch
from tests.services import databases

SCHEMA = Path(__file__).parent / "schema"
LAST = "0019_alter_periodictasks_options"


def walk(python: str, scratch: Scratch, app: str) -> dict[str, Any]:
    """What schema/walk.py sees when this Python migrates this app in this empty database."""
    command = [python, str(SCHEMA / "walk.py"), json.dumps(scratch.settings), app, LAST]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode:
        raise RuntimeError(f"{app} on {scratch.vendor}:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(python: str) -> None:
    for kind in databases():
        with Scratch.open(kind) as scratch:
            seen = walk(python, scratch, "django_celery_beat")
        path = SCHEMA / f"{kind.vendor}.json"
        path.write_text(json.dumps(seen, indent=1) + "\n")
        print(f"{path.name}: {len(seen['up'])} migrations")


if __name__ == "__main__":
    main(*sys.argv[1:])
