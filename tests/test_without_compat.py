"""The engine needs nothing of what is there for programs written for django-celery-beat."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.processes import ROOT, environment

#: A quick part of the engine's suite: everything that runs in one process on its own database.
SUITE = ("tests/engine", *(f"tests/store/test_{name}.py" for name in ("claims_missed", "plans_edits", "recovery")))


def test_the_engine_s_suite_passes_in_a_copy_without_compat(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "compat"))
    env = environment({"PYTHONPATH": os.pathsep.join((str(tmp_path / "src"), str(ROOT))),
                       "ONEBEAT_TEST_DB": "sqlite", "ONEBEAT_TEST_SETTINGS": '{"import_alias": false}',
                       "PYTEST_ADDOPTS": ""})  # fmt: skip
    where = "import onebeat; print(onebeat.__file__)"
    found = subprocess.run([sys.executable, "-c", where], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(tmp_path))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUITE]
    marked = ["-m", "django_db and not slow and not long and not broker"]
    done = subprocess.run([*command, *marked], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:] + done.stderr[-2000:]
