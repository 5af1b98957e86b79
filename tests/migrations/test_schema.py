"""Our migrations leave in every database, after each step, what django-celery-beat 2.9.0 leaves there.

The record beside this file was made with the real one; see record_schema.py.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest
from django.db import models

from onebeat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
from onebeat.models.fields import default_zone
from tests.migrations.record_schema import SCHEMA, walk
from tests.processes import ROOT
from tests.scratch import Scratch
from tests.services import VENDORS

# In a process of its own: models read the settings when they are imported.
CHECKS = """
import sys, django
from django.conf import settings
from django.core.management import call_command
zone, language, aware = sys.argv[1:]
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "onebeat"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": ":memory:",
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    TIME_ZONE=zone, CELERY_TIMEZONE=zone, LANGUAGE_CODE=language, USE_TZ=aware == "1",
)
django.setup()
call_command("check", fail_level="WARNING")
call_command("makemigrations", check_changes=True, dry_run=True)
"""


def record(vendor: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMA / f"{vendor}.json").read_text())
    return found


def test_each_step_leaves_the_same_tables_and_its_way_back_restores_them(blank_database: Scratch) -> None:
    recorded, ours = record(blank_database.vendor), walk(sys.executable, blank_database, "onebeat")
    assert ours["dependencies"] == recorded["dependencies"]
    assert list(ours["up"]) == list(recorded["up"])
    for name, changed in recorded["up"].items():
        assert ours["up"][name] == changed, name
    assert ours["branch"] == recorded["branch"]
    assert ours["back"] == []


@pytest.mark.parametrize("vendor", VENDORS.values())
def test_the_record_is_whole(vendor: str) -> None:
    # A record of nothing would agree with migrations that do nothing.
    recorded = record(vendor)
    last: dict[str, Any] = {}
    assert len(recorded["up"]) == 21
    for changed in recorded["up"].values():
        last |= changed
    assert {name: len(table["columns"]) for name, table in last.items()} == {
        "django_celery_beat_clockedschedule": 2,
        "django_celery_beat_crontabschedule": 7,
        "django_celery_beat_intervalschedule": 3,
        "django_celery_beat_periodictask": 23,
        "django_celery_beat_periodictasks": 2,
        "django_celery_beat_solarschedule": 4,
    }


@pytest.mark.parametrize("case", ["UTC en-us 1", "America/Chicago de 0", "Asia/Kolkata ja 1", "Europe/Paris fr 0"])
def test_no_setting_asks_for_a_migration_or_a_warning(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECKS, *case.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["No changes detected"]), done.stdout + done.stderr


def test_migrations_see_plain_columns() -> None:
    """Of Django's own classes, without what the database never sees."""
    fields = [IntervalSchedule._meta.get_field("period"), CrontabSchedule._meta.get_field("timezone")]
    assert [field.deconstruct()[1:] for field in [*fields, PeriodicTask._meta.get_field("interval")]] == [
        ("django.db.models.CharField", [], {"max_length": 24}),
        ("django.db.models.CharField", [], {"max_length": 63, "default": default_zone}),
        (
            "django.db.models.ForeignKey",
            [],
            {"null": True, "blank": True, "on_delete": models.CASCADE, "to": "django_celery_beat.intervalschedule"},
        ),
    ]


def test_a_copy_of_a_field_tells_of_itself() -> None:
    # django-simple-history makes its tables of copies, while models are being loaded.
    for model in (PeriodicTask, CrontabSchedule):
        for field in model._meta.local_fields:
            twin = copy.copy(field)
            twin._unique, twin.null = False, True
            *_, said = twin.deconstruct()
            assert said.get("null") and "unique" not in said, field
            assert (type(twin), twin.__class__) == (type(field), field.__class__)
