"""The examples do what they say: each checks itself, and ends with what it saw."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onebeat.management.commands.onebeat import Command
from tests.processes import ROOT

ENDS = {
    "verbs/follow_up.py": "asked: order 7, order 8",
    "verbs/reminder.py": "reminded: [1, 3]",
    "verbs/tenants.py": "tenant-3 has paid and has 10 reports",
    "books/run.py": "closed on: 2027-01-29, 2027-02-26, 2027-03-31",
}
DEPLOY = ROOT / "examples/deploy"


def run(*command: str, folder: Path = ROOT) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("DJANGO_SETTINGS", "PYTEST"))}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_every_example_is_run() -> None:
    programs = {str(file.relative_to(ROOT / "examples")) for file in (ROOT / "examples").glob("*/*.py")}
    demo, others = {one for one in programs if one.startswith("demo/")}, {"verbs/small.py", "books/settings.py"}
    assert programs - demo - others - {"books/test_books.py"} == set(ENDS)


@pytest.mark.parametrize("name", ENDS)
def test_example(name: str) -> None:
    assert run(f"examples/{name}").splitlines()[-1].startswith(ENDS[name])


def test_testing_a_schedule() -> None:
    """With pytest as a user has it: nothing but the installed package brings the fixture."""
    text = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=ROOT / "examples/books")
    assert re.search(r"^5 passed", text, re.M), text


def test_the_commands_of_the_deployments_are_there() -> None:
    parser = Command().create_parser("manage.py", "onebeat")
    texts = [(DEPLOY / name).read_text() for name in ("docker-compose.yml", "onebeat@.service")]
    found = [shlex.split(line) for text in texts for line in re.findall(r"manage\.py onebeat (.+)", text)]
    probe = re.search(r'\["CMD", "python", "manage.py", "onebeat", (.+?)\]', texts[0])
    assert probe
    found.append(re.findall(r'"(.+?)"', probe[1]))
    assert [parser.parse_args(each).command for each in found] == ["status", "run", "run", "health"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_the_unit_is_one(tmp_path: Path) -> None:
    # The program that it starts is on nobody's host but the user's.
    text = (DEPLOY / "onebeat@.service").read_text().replace("/srv/shop/.venv/bin/python", sys.executable)
    (tmp_path / "onebeat@.service").write_text(text)
    (tmp_path / "onebeat@1.service").symlink_to("onebeat@.service")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / "onebeat@1.service")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "onebeat@" in line]
    assert (done.returncode, ours) == (0, []), done.stderr
