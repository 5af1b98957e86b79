"""Records the public names of the real django-celery-beat 2.9, and writes the page about those that are not kept.

    python -m tests.compat.record_names

The record goes to tests/compat/names/names.json; tests/compat/test_names.py compares ours with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.compat.names.exceptions import GONE, OTHERWISE
from tests.processes import ROOT, environment
from tests.takeover.real import home

NAMES = Path(__file__).parent / "names" / "names.json"
PAGE = ROOT / "docs" / "django-celery-beat-names.md"
HEAD = """\
# The names of django-celery-beat

`import django_celery_beat` gives onebeat, and every public name of django-celery-beat 2.9.0 is there, with the same
arguments, but for those below. The list is kept by a test (`tests/compat/test_names.py`), which compares modules,
classes, members and signatures with a record of the real ones. What a module of django-celery-beat only imports from
elsewhere (`django_celery_beat.admin.loads`) is to be imported from its own place.
"""


def page() -> str:
    """The page."""
    lines = [HEAD, "## Not there\n", "| name | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in GONE.items()]
    lines += ["\n## There, and not as before\n", "| name | what is different, and why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in OTHERWISE.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    path = os.pathsep.join((str(home()), str(ROOT)))
    env = environment({"ONEBEAT_TEST_APP": "django_celery_beat"}) | {"PYTHONPATH": path}
    command = [sys.executable, "-m", "tests.compat.names.walk"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    lines = (f"{json.dumps(name)}: {json.dumps(what)}" for name, what in found.items())
    NAMES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    PAGE.write_text(page())
    print(f"{len(found)} names")


if __name__ == "__main__":
    main()
