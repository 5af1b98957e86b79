"""A project whose router keeps onebeat's tables in a database that is not the default one, which has none of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, environment

SETTINGS = """
from tests.project.settings import *
DATABASES = {name: {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{HERE}/{name}",
                    "OPTIONS": {"transaction_mode": "IMMEDIATE"}} for name in ("default", "work")}
DATABASE_ROUTERS = ["routed.Router"]
CELERY_BEAT_SCHEDULE = {"declared": {"task": "elsewhere.run", "schedule": 3600.0}}

class Router:
    def db_for_read(self, model, **hints):
        return "work" if model._meta.app_label == "django_celery_beat" else None

    db_for_write = db_for_read

    def allow_migrate(self, db, app_label, **hints):
        return (db == "work") == (app_label == "django_celery_beat")
"""
SENT = """
import django
django.setup()
from datetime import UTC, datetime
from django.core.management import call_command
from onebeat.celery.beat import Scheduler
from onebeat.compat.schedulers import DatabaseScheduler
from onebeat.models import Beat, Occurrence, PeriodicTask, PeriodicTasks
from tests.compat.beating import drive, task
from tests.engine.kit import clocked
from tests.project.celery import app

class Hooked(DatabaseScheduler):
    def apply_entry(self, entry, producer=None):
        entry.options["headers"]["hooked"] = True
        super().apply_entry(entry, producer=producer)

class Classic(DatabaseScheduler):
    def is_due(self, entry):
        return super().is_due(entry)

for database in ("default", "work"):
    call_command("migrate", database=database, verbosity=0)
kind = {"plain": Scheduler, "engine": DatabaseScheduler, "hooked": Hooked, "classic": Classic}[KIND]
scheduler = kind(app=app)
assert [name for name in drive(scheduler) if name != "declared"] == []
one = task("one", clocked=clocked(datetime(2020, 1, 1, tzinfo=UTC)))
assert drive(scheduler) == ["one"], KIND
scheduler.close()
one.refresh_from_db()
assert (one.enabled, one.total_run_count) == (False, 1), (one.enabled, one.total_run_count)
assert PeriodicTask.objects.filter(name="declared").exists() and Beat.objects.exists()
assert PeriodicTasks.last_change() is not None
assert Occurrence.objects.exists() == (KIND != "classic")
"""


@pytest.mark.parametrize("kind", ["plain", "engine", "hooked", "classic"])
def test_every_way_of_sending_works_on_the_router_s_database(tmp_path: Path, kind: str) -> None:
    (tmp_path / "routed.py").write_text(f"HERE = {str(tmp_path)!r}\n{SETTINGS}")
    env = environment({"DJANGO_SETTINGS_MODULE": "routed", "PYTHONPATH": f"{tmp_path}:{ROOT}"})
    command = [sys.executable, "-c", f"KIND = {kind!r}\n{SENT}"]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_of_ours_names_the_default_database_by_itself() -> None:
    sources = [path for path in (ROOT / "src").rglob("*.py") if "migrations" not in path.parts]
    named = [str(path) for path in sources if re.search(r"DEFAULT_DB_ALIAS|using\(.default.\)", path.read_text())]
    assert named == []
