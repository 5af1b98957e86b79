"""What the README says is run: its first steps in a project of their own, its commands, its tables."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, eventually

README = (ROOT / "README.md").read_text()

PROJECT = {
    "shop/__init__.py": "",
    "shop/tasks.py": """
from celery import shared_task


@shared_task
def tidy_up() -> None: ...


@shared_task
def remind(number: int) -> None: ...
""",
    "proj/__init__.py": "from proj.celery import app as celery_app",
    "proj/celery.py": """
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
app = Celery("proj")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["shop"])
""",
    "manage.py": """
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proj.settings")
execute_from_command_line(sys.argv)
""",
}
SETTINGS = """
SECRET_KEY = "x"
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": "db.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
"""


def between(name: str) -> str:
    found = re.search(rf"<!-- {name} -->(.*)<!-- /{name} -->", README, re.S)
    assert found
    return found[1]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A new Django project that follows the README, on SQLite and files."""
    settings, _ = blocks(between("start"), "python")
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("out", "control"):
        (tmp_path / name).mkdir()
    (tmp_path / "proj/settings.py").write_text(
        f"{SETTINGS}\n{settings}\n"
        # The test needs no server; the README's broker is the only line that is replaced.
        "CELERY_BROKER_URL = 'filesystem://'\n"
        "CELERY_BROKER_TRANSPORT_OPTIONS = "
        "{'data_folder_in': 'out', 'data_folder_out': 'out', 'control_folder': 'control'}\n"
    )
    return tmp_path


def run(project: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=project, env=clean(project), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean(project: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "ONEBEAT"))}
    return {**env, "PYTHONPATH": str(project), "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}


def test_the_first_steps_work_as_written(project: Path) -> None:
    install, commands = blocks(between("start"), "sh")
    _, models = blocks(between("start"), "python")
    assert install.split() == ["pip", "install", "onebeat"]
    migrate, beat = (line.split("#")[0].split() for line in commands.strip().splitlines())

    run(project, sys.executable, *migrate[1:])
    run(project, sys.executable, "manage.py", "shell", "-c", models)
    started = subprocess.Popen(beat, cwd=project, env=clean(project), stderr=subprocess.PIPE)
    try:

        def planned() -> bool:
            status = json.loads(run(project, sys.executable, "manage.py", "onebeat", "status", "--json"))
            return status["waiting"] == 2 and [one["able"] for one in status["schedulers"]] == [True]

        eventually(planned, 60, "the scheduler has planned both tasks")
    finally:
        started.send_signal(signal.SIGTERM)
        _, errors = started.communicate(timeout=20)
    assert started.returncode == 0, errors


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", README)) - {"it"}))
def test_the_makefile_has_every_target_that_is_named(target: str) -> None:
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_the_settings_table_is_the_code() -> None:
    from onebeat.conf import Settings

    rows = dict(re.findall(r'^\| `(\w+)` \| ([\d.]+|True|False|"\w*") \|', README, re.M))
    assert {name: ast.literal_eval(value) for name, value in rows.items()} == dataclasses.asdict(Settings())


def test_every_link_to_a_file_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    for folder in re.findall(r"`(tests/[a-z]+)`", README):
        assert (ROOT / folder).is_dir(), folder


def test_the_demo_s_output_is_there() -> None:
    (shown,) = blocks(between("demo"), "")
    assert "held" in shown, "paste what `make demo` printed last"
