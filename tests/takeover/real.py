"""The real django-celery-beat 2.9 beside this checkout, and what it does to a database when it is asked.

Only the distribution and what it alone needs are fetched from PyPI, into a folder that is kept for the next time; the
Django, Celery and database drivers are those that run the tests. Nothing here imports onebeat: the functions below run
in processes in which `django_celery_beat` is the real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, run_python
from tests.scratch import Scratch

VERSION = "2.9.0"
PACKAGES = (f"django-celery-beat=={VERSION}", "cron-descriptor==1.4.5", "python-crontab", "django-timezone-field")


@cache
def home() -> Path:
    """The folder with the distribution. Skips the test where it cannot be fetched, but not in CI."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = Path(tempfile.gettempdir(), f"onebeat-real-{os.getuid()}-{VERSION}-{python}")
    if not folder.exists():
        part = tempfile.mkdtemp(dir=tempfile.gettempdir())
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", part, *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            assert not os.environ.get("CI"), done.stderr
            pytest.skip(f"django-celery-beat cannot be fetched: {done.stderr[-300:]}")
        try:
            Path(part).rename(folder)
        except OSError:  # another session was first
            assert folder.exists()
    return folder


def real(scratch: Scratch, target: Any, *args: Any, **env: str) -> Any:
    """Call target(*args) where the database's app is the real django-celery-beat."""
    path = os.pathsep.join((str(home()), str(ROOT)))
    return run_python(
        {**scratch.env, "ONEBEAT_TEST_APP": "django_celery_beat", "PYTHONPATH": path, **env}, target, *args
    )


# -- in the other process -----------------------------------------------------------------------------------------


def _scheduler() -> Any:
    import django_celery_beat
    from django_celery_beat.schedulers import DatabaseScheduler

    from tests.project.celery import app

    assert django_celery_beat.__version__ == VERSION and Path(django_celery_beat.__file__).is_relative_to(home())
    return DatabaseScheduler(app=app)


def store_settings(entries: dict[str, dict[str, Any]]) -> None:
    """Start its beat with these entries of CELERY_BEAT_SCHEDULE, and stop it before its first tick."""
    from tests.project.celery import app

    app.conf.beat_schedule = entries
    _scheduler().close()


def beat() -> list[str]:
    """Start its beat, let it tick until it would sleep, and stop it. Returns the names of what was sent."""
    from tests.project.celery import app

    scheduler = _scheduler()
    for _ in range(200):
        if scheduler.tick() > 0:
            break
    scheduler.close()
    sent = []
    with app.connection_for_read() as link:
        queue = link.SimpleQueue("celery")
        while queue.qsize():
            message = queue.get(timeout=1)
            message.ack()
            sent.append(message.headers["periodic_task_name"])
        queue.close()
    return sorted(name for name in sent if name != "celery.backend_cleanup")


def answers() -> dict[str, Any]:
    """What its beat makes of each enabled task: (is due, seconds), or why it fails."""
    from django_celery_beat.models import PeriodicTask
    from django_celery_beat.schedulers import ModelEntry

    from tests.project.celery import app

    found: dict[str, Any] = {}
    for row in PeriodicTask.objects.filter(enabled=True):
        try:
            due, seconds = ModelEntry(row, app=app).is_due()
            found[row.name] = [bool(due), seconds]
        except Exception as error:
            found[row.name] = repr(error)
    return found


def each_alone() -> dict[str, list[str]]:
    """What becomes of each task if it is the only one (some are due): a few ticks, and the run state is written."""
    from django_celery_beat.models import PeriodicTask
    from django_celery_beat.schedulers import DatabaseScheduler

    from tests.project.celery import app

    found = {}
    app.conf.result_expires = None  # no clean-up of results beside them
    for key, name in PeriodicTask.objects.values_list("pk", "name"):
        alone = PeriodicTask.objects.filter(pk=key)
        seen = []
        try:
            scheduler = DatabaseScheduler(app=app, lazy=True)
            scheduler.enabled_models_qs = lambda alone=alone: alone.filter(enabled=True)
            for _ in range(3):
                seen += ["sends"] if scheduler.tick() == 0 else []
            left_out = name not in scheduler._schedule
            scheduler._dirty.update([name] if seen else [])  # the first time its apply_entry logs what sync raises
            scheduler.sync()
            fate = "left out" if left_out else "fine"
        except Exception:
            fate = "stops"
        if not PeriodicTask.objects.filter(pk=key, enabled=True).exists():
            fate = "disabled"
        found[name] = seen + ([fate] if fate != "fine" or not seen else [])
    return found


def rows() -> dict[str, Any]:
    """Each task as it stands: enabled, run count, and the last run as seconds before now."""
    from datetime import UTC, datetime

    from django_celery_beat.models import PeriodicTask

    def ago(value: Any) -> Any:  # it takes a naive time for UTC
        return value and (datetime.now(UTC) - (value if value.tzinfo else value.replace(tzinfo=UTC))).total_seconds()

    tasks = PeriodicTask.objects.exclude(name="celery.backend_cleanup")
    return {row.name: [row.enabled, row.total_run_count, ago(row.last_run_at)] for row in tasks}


def everything() -> dict[str, Any]:
    """All of it in one process, which is quicker."""
    found = {"answers": answers(), "rows": rows(), "sent": beat(), "sent again": beat()}
    edits()
    return found


def edits() -> None:
    """Its ORM and its admin: add, change and delete, also what onebeat's constraints would refuse."""
    from datetime import UTC, datetime, timedelta

    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    twin = IntervalSchedule.objects.create(every=1, period="hours")
    last = datetime.now(UTC) - timedelta(minutes=61)
    PeriodicTask.objects.create(
        name="new", task="a.b", interval=twin, last_run_at=last if settings.USE_TZ else last.replace(tzinfo=None)
    )
    user = User.objects.create_superuser("admin")
    client = Client()
    client.force_login(user)

    def post(path: str, **data: Any) -> None:
        answer = client.post(f"/admin/django_celery_beat/{path}/", data)
        assert answer.status_code == 302, answer.context["errors"]

    formset = {"periodictask_set-TOTAL_FORMS": 0, "periodictask_set-INITIAL_FORMS": 0}
    post("intervalschedule/add", every=1, period="hours", **formset)
    post(f"intervalschedule/{IntervalSchedule.objects.last().pk}/change", every=1, period="hours", **formset)
    fields = {"task": "a.b", "interval": twin.pk, "args": "[]", "kwargs": "{}", "headers": "{}", "priority": ""}
    post("periodictask/add", name="by hand", **fields)
    by_hand = PeriodicTask.objects.get(name="by hand")
    post(f"periodictask/{by_hand.pk}/change", name="by hand", description="changed", **fields)
    paused = PeriodicTask.objects.get(name="paused")
    for task in (by_hand, paused):
        assert client.get(f"/admin/django_celery_beat/periodictask/{task.pk}/change/").status_code == 200
        post(f"periodictask/{task.pk}/delete", post="yes")
    assert client.get("/admin/django_celery_beat/periodictask/").status_code == 200
    gone = PeriodicTask.objects.create(name="gone", task="a.b", interval=twin)
    PeriodicTask.objects.filter(pk=gone.pk).update(description="x")
    gone.delete()
