"""Every command of docs/switch.md is run, in its order, on a project at the real django-celery-beat 2.9, and back."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, eventually
from tests.takeover import real
from tests.test_readme import PROJECT, SETTINGS, clean

PAGE = (ROOT / "docs/switch.md").read_text()
FILL = """
from datetime import timedelta
from django.utils import timezone
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask
often = [IntervalSchedule.objects.create(every=1, period="seconds") for _ in range(3)]
for number, row in enumerate(often):
    PeriodicTask.objects.create(name=f"often {number}", task="shop.tasks.tidy_up", interval=row)
friday = CrontabSchedule.objects.create(minute="0", hour="0", day_of_week="fri#2", timezone="UTC")
PeriodicTask.objects.create(name="friday", task="shop.tasks.tidy_up", crontab=friday)
past = ClockedSchedule.objects.create(clocked_time=timezone.now() - timedelta(hours=1))
PeriodicTask.objects.create(name="finished", task="shop.tasks.remind", clocked=past, one_off=True,
    total_run_count=1, last_run_at=timezone.now() - timedelta(hours=1))
"""
ADDED = """
from datetime import timedelta
from django.utils import timezone
from onebeat.models import CrontabSchedule, PeriodicTask
last = CrontabSchedule.objects.create(minute="0", hour="0", day_of_week="fri#L", timezone="UTC")
PeriodicTask.objects.create(name="last friday", task="shop.tasks.tidy_up", crontab=last)
"""
ROWS = """
import json
from django_celery_beat.models import PeriodicTask
print(json.dumps(list(PeriodicTask.objects.values_list("name", "enabled", "total_run_count").order_by("name"))))
"""


class Site:
    """A project in a folder, with both distributions installed."""

    def __init__(self, folder: Path, *beside: str) -> None:
        self.folder = folder
        self.env = clean(folder)
        # Behind our own packages: what both bring is ours.
        code = f"import sys; sys.path += {list(beside)!r}"
        (folder / "sitecustomize.py").write_text(code)
        for name, text in PROJECT.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        for name in ("out", "control"):
            (folder / name).mkdir()
        self.line = '"django_celery_beat",'
        (folder / "proj/settings.py").write_text(
            f'{SETTINGS}\nINSTALLED_APPS += [\n    {self.line}\n]\nCELERY_BROKER_URL = "filesystem://"\n'
            "CELERY_BROKER_TRANSPORT_OPTIONS = "
            "{'data_folder_in': 'out', 'data_folder_out': 'out', 'control_folder': 'control'}\n"
        )

    def write_line(self, line: str) -> None:
        settings = self.folder / "proj/settings.py"
        text = settings.read_text()
        assert self.line in text
        settings.write_text(text.replace(self.line, line))
        self.line = line

    def run(self, command: str, code: int = 0) -> str:
        name, *rest = command.split()
        done = subprocess.run(
            [sys.executable if name == "python" else name, *rest],
            cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def shell(self, code: str) -> Any:
        done = subprocess.run(
            [sys.executable, "manage.py", "shell", "--verbosity=0", "-c", code],
            cwd=self.folder, env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None

    def beat(self, command: str) -> list[str]:
        """Run a beat until it has sent something. Returns the names of what it sent."""
        started = subprocess.Popen(
            command.split(), cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            eventually(lambda: self.names() or started.poll() is not None, 60, f"a message of {command}")
        finally:
            started.send_signal(signal.SIGTERM)
            _, errors = started.communicate(timeout=60)
        assert self.names(), errors.decode()
        names = self.names()
        for one in (self.folder / "out").iterdir():
            one.unlink()
        return names

    def names(self) -> list[str]:
        files = list((self.folder / "out").glob("*.msg"))
        return [json.loads(one.read_text())["headers"]["periodic_task_name"] for one in files if one.stat().st_size]


def block(name: str) -> list[str]:
    """The commands of the page's block of this name."""
    found = re.search(rf"<!-- {name} -->\n```sh\n(.*?)```", PAGE, re.S)
    assert found, name
    return found[1].strip().splitlines()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, str(real.home()))


def test_the_page_as_written(site: Site) -> None:
    site.run("python manage.py migrate --verbosity=0")
    site.shell(FILL)
    before = site.shell("import json, django_celery_beat; print(json.dumps(django_celery_beat.__file__))")
    assert "onebeat/compat" not in before
    assert block("install") == ["pip install onebeat"]

    there, _, back, *_ = re.findall(r"```python\n(.*?)\n```", PAGE, re.S)
    site.write_line(there)
    check, adopt = block("look")
    assert "onebeat.I001" in site.run(check)
    told = site.run(adopt)
    assert "interval: 2 duplicates of 1 rows would be merged" in told
    assert "used by 3 tasks" in told and "fri#2" in told
    (migrate,) = block("migrate")
    assert "1004_onebeat_unique_clocked... OK" in site.run(migrate)
    (start,) = block("start")
    assert {"often 0", "often 1", "often 2"} >= set(site.beat(start))
    status, adopted = block("see")
    assert "4 tasks wait" in site.run(status)
    assert "interval: 2 duplicates of 1 rows merged" in site.run(adopted)

    site.shell(ADDED)
    look, hand = block("back")
    assert "last friday" in site.run(look, code=1)
    assert "DISABLED: last friday" in site.run(hand)
    counts = site.shell(ROWS)
    assert [name for name, enabled, _ in counts if not enabled] == ["finished", "last friday"]
    site.write_line(back)
    (old,) = block("old")
    assert {"often 0", "often 1", "often 2"} >= set(site.beat(old))
    after = site.shell(ROWS)
    assert [row for row in after if not row[1]] == [row for row in counts if not row[1]]
    site.write_line(there)
    (away,) = re.findall(r"```sh\n(.*migrate django_celery_beat 0019)\n```", PAGE)
    assert "Unapplying django_celery_beat.1001_onebeat_engine... OK" in site.run(away)


def test_every_command_and_link_of_the_page_is_known() -> None:
    ours = set(re.findall(r"<!-- (\w+) -->", PAGE))
    assert ours == {"install", "look", "migrate", "start", "see", "back", "old"}
    # What comes after is run by tests.clients.
    own, _, _ = PAGE.partition("## With other people's packages")
    assert len(re.findall("```sh", own)) == len(ours) + 1
    for target in re.findall(r"\]\(([^)#]+)[)#]", PAGE):
        assert (ROOT / "docs" / target).exists(), target
