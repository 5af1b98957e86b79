"""`django_celery_beat` is a second name of onebeat, whether or not the old distribution is installed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError

from onebeat import conf
from tests.processes import ROOT, environment

#: What other people's code imports from django-celery-beat 2.9.0.
NAMES = {
    "": "__version__ VERSION version_info",
    "admin": "ClockedScheduleAdmin CrontabScheduleAdmin IntervalScheduleAdmin PeriodicTaskAdmin PeriodicTaskForm"
    " PeriodicTaskInline ScheduleAdmin SolarScheduleAdmin TaskChoiceField TaskSelectWidget",
    "apps": "BeatConfig",
    "clockedschedule": "clocked",
    "models": "DAYS HOURS MINUTES SECONDS MICROSECONDS PERIOD_CHOICES SINGULAR_PERIODS SOLAR_SCHEDULES ClockedSchedule"
    " CrontabSchedule IntervalSchedule PeriodicTask PeriodicTasks SolarSchedule cronexp"
    " crontab_schedule_celery_timezone FormatException MissingFieldException WrongArgumentException",
    "querysets": "PeriodicTaskQuerySet",
    "schedulers": "ADD_ENTRY_ERROR DEFAULT_MAX_INTERVAL SCHEDULE_SYNC_MAX_INTERVAL DatabaseScheduler ModelEntry"
    " Finalize current_app",
    "signals": "signals_connect",
    "tzcrontab": "TzAwareCrontab schedstate",
    "utils": "NEVER_CHECK_TIMEOUT aware_now is_aware is_database_scheduler make_aware now now_localtime",
    "validators": "crontab_validator day_of_month_validator day_of_week_validator hour_validator minute_validator"
    " month_of_year_validator FormatException MissingFieldException WrongArgumentException",
}
OLD = {
    "django_celery_beat/__init__.py": "__version__ = 'old'",
    "django_celery_beat/utils.py": "",
    "django_celery_beat/apps.py": "raise AssertionError('the old app')",
    "django_celery_beat/models.py": "raise AssertionError('the old models')",
    "django_celery_beat/migrations/__init__.py": "raise AssertionError('the old migrations')",
    "django_celery_beat-2.9.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: django-celery-beat\nVersion: 2.9.0\n",
}
SWITCHED = "import onebeat.takeover\nfrom tests.project.settings import *\n"
LOOKED_UP = """
import os
from pathlib import Path
from django.apps import apps
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.core.management import call_command, get_commands
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.template.utils import get_app_template_dirs
from tests.project.celery import app
config = apps.get_app_config("django_celery_beat")
assert apps.is_installed("django_celery_beat") and config.name == "django_celery_beat"
home = Path(import_module("onebeat").__file__).parent
# Any folder of ours will do: Django looks for `templates`, `static` and `locale` in the same place.
assert home / "migrations" in get_app_template_dirs("migrations") and Path(config.path) == home
assert type("F", (AppDirectoriesFinder,), {"source_dir": "migrations"})().find("0001_initial.py")
assert get_commands()["onebeat"] == "django_celery_beat"
for _ in range(2):  # the second time Django reloads the package
    names = [name for label, name in MigrationLoader(connection).disk_migrations if label == config.label]
    assert "0001_initial" in names and "1001_onebeat_engine" in names
from django_celery_beat import migrations
assert migrations is import_module("onebeat.migrations")
assert import_module("django_celery_beat.migrations.0001_initial") is import_module("onebeat.migrations.0001_initial")
app.autodiscover_tasks(force=True)
from django_celery_beat.models import PeriodicTask
import onebeat.models
import django_celery_beat.utils
assert django_celery_beat.__version__ == "2.9.0" and django_celery_beat.utils.__name__ == "onebeat.compat.utils"
assert PeriodicTask is onebeat.models.PeriodicTask is apps.get_model("django_celery_beat.PeriodicTask")
call_command("check", fail_level="WARNING")
call_command("makemigrations", check_changes=True, dry_run=True)
call_command("migrate", verbosity=0)
call_command("onebeat", "status", "--json")
"""


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Runs code in a fresh Python that has set up Django, and returns what it printed."""
    (tmp_path / "switched.py").write_text(SWITCHED)

    def run(code: str, first: str = "", **env: str) -> str:
        whole = f"{first}\nfrom importlib import import_module\nimport sys, django\ndjango.setup()\n{code}"
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "db"),
                    "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20}}  # fmt: skip
        env = {"ONEBEAT_TEST_DB": json.dumps(database), "PYTHONPATH": f"{tmp_path}:{ROOT}", **env}
        done = subprocess.run(
            [sys.executable, "-c", whole], env=environment(env), cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def old(tmp_path: Path) -> None:
    """Another django-celery-beat, installed on the same path."""
    for name, text in OLD.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize("module", NAMES)
def test_every_public_name_is_there_and_is_the_same_object(module: str) -> None:
    alias = import_module(f"django_celery_beat.{module}".rstrip("."))
    real = import_module(f"onebeat.compat.{module}".rstrip("."))
    assert alias is real and real.__spec__ is not None and real.__spec__.name == real.__name__
    assert [name for name in NAMES[module].split() if not hasattr(alias, name)] == []


def test_the_classes_are_onebeat_s_own() -> None:
    for alias, real in {
        "models": "onebeat.models",
        "querysets": "onebeat.models.tasks",
    }.items():
        ours = import_module(real)
        for name in NAMES[alias].split():
            if isinstance(getattr(ours, name, None), type):
                assert getattr(import_module(f"django_celery_beat.{alias}"), name) is getattr(ours, name)
    schedule = import_module("django_celery_beat.models").ClockedSchedule
    assert schedule is import_module("onebeat.models").ClockedSchedule


def test_a_name_with_nothing_behind_it_is_missing_under_its_own_name() -> None:
    assert find_spec("django_celery_beat.tasks") is None
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module("django_celery_beat.tasks")
    assert caught.value.name == "django_celery_beat.tasks"
    with pytest.raises(ModuleNotFoundError):
        import_module("django_celery_beat_extra")


def test_django_and_celery_find_everything_beside_the_old_distribution(python: Callable[..., str], old: None) -> None:
    first = "import django_celery_beat.utils\nassert django_celery_beat.__version__ == 'old'"
    assert '"schedulers": []' in python(LOOKED_UP, first)


@pytest.mark.parametrize("line", ["django_celery_beat", "django_celery_beat.apps.BeatConfig"])
def test_with_takeover_the_old_line_stays(python: Callable[..., str], line: str) -> None:
    assert '"schedulers": []' in python(LOOKED_UP, DJANGO_SETTINGS_MODULE="switched", ONEBEAT_TEST_APP=line)


def test_one_silenceable_line_tells_of_both(python: Callable[..., str], old: None) -> None:
    said = python(
        "from django.conf import settings\n"
        "from django.core.checks import INFO, run_checks\n"
        "(line,) = run_checks()\n"
        "print(line.level == INFO, line.is_silenced(), line)\n"
        "settings.SILENCED_SYSTEM_CHECKS = ['onebeat.I001']\n"
        "print(line.is_silenced())"
    )
    assert said.startswith("True False") and "django-celery-beat 2.9.0 is installed as well" in said
    assert said.endswith("True\n")


@pytest.mark.parametrize("both", [False, True])
def test_it_can_be_switched_off(python: Callable[..., str], both: bool, request: pytest.FixtureRequest) -> None:
    if both:
        request.getfixturevalue("old")
    said = python(
        "from django.apps import apps; from django.core.management import call_command\n"
        "print(apps.get_app_config('django_celery_beat').name)\n"
        "call_command('check', fail_level='WARNING'); call_command('migrate', verbosity=0, plan=True)\n"
        "call_command('makemigrations', check_changes=True, dry_run=True)\n"
        "try: import django_celery_beat; print(django_celery_beat.__version__)\n"
        "except ModuleNotFoundError as error: print(error)",
        ONEBEAT_TEST_SETTINGS='{"import_alias": false}',
    )
    assert said.startswith("onebeat\n")
    assert said.rstrip().endswith("old" if both else "No module named 'django_celery_beat'")


def test_the_switch_is_checked() -> None:
    assert conf.problems({"import_alias": False}) == []
    assert conf.problems({"import_alias": 0}) == ["import_alias must be True or False, not 0"]


def test_a_failing_import_is_told_as_it_is(python: Callable[..., str]) -> None:
    # Before Django is set up, as under django-celery-beat: the registry is not ready, and a later import works.
    first = (
        "import onebeat.takeover\n"
        "try: import django_celery_beat.models\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    assert python("import django_celery_beat.models; print('now')", first).split() == ["AppRegistryNotReady", "now"]


def test_the_small_parts_do_what_their_names_say() -> None:
    from django_celery_beat.admin import TaskSelectWidget
    from django_celery_beat.models import cronexp, crontab_schedule_celery_timezone
    from django_celery_beat.tzcrontab import TzAwareCrontab
    from django_celery_beat.utils import aware_now, is_database_scheduler, make_aware, now

    assert [cronexp(field) for field in ("1, 2", 0, "", None)] == ["1,2", "0", "*", "*"]
    assert crontab_schedule_celery_timezone() == "UTC"
    paris = ZoneInfo("Europe/Paris")
    assert TzAwareCrontab(minute=5, day_of_week="mon", tz=paris).tz is paris
    assert ("tests.project.tasks.add",) * 2 in TaskSelectWidget().choices
    assert now().tzinfo is not None and aware_now().tzinfo is not None
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - what it is for
    assert make_aware(naive) == naive.replace(tzinfo=UTC)
    answers = ["onebeat", "django_celery_beat.schedulers.DatabaseScheduler", "celery.beat:PersistentScheduler", None]
    assert [is_database_scheduler(one) for one in answers] == [True, True, False, False]


def test_a_crontab_goes_by_the_wall_clock_of_its_zone_whatever_it_is_given() -> None:
    from django_celery_beat.tzcrontab import TzAwareCrontab

    now = datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC)
    paris = TzAwareCrontab(minute="0", hour="14", tz=ZoneInfo("Europe/Paris"))
    paris.nowfun = lambda: now.astimezone(paris.tz)
    assert paris.is_due(now - timedelta(hours=1)).is_due and not paris.is_due(now - timedelta(seconds=10)).is_due
    again = pickle.loads(pickle.dumps(TzAwareCrontab("0", "14", tz=ZoneInfo("Europe/Paris"))))
    assert again == TzAwareCrontab("0", "14", tz=ZoneInfo("Europe/Paris")) != TzAwareCrontab("0", "14")
    assert hash(again) == hash(TzAwareCrontab("0", "14", tz=ZoneInfo("Europe/Paris")))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("crontab", "0 9 * * mon-fri", "0 9 * *"),
        ("crontab", "0 9 29 2 *", "0 9 31 2 *"),
        ("minute", "*/5", "60"),
        ("hour", "8-18", "24"),
        ("day_of_month", "1,L", "32"),
        ("month_of_year", "jan,jul", "13"),
        ("day_of_week", "sunday", "8"),
    ],
)
def test_the_validators_use_the_one_grammar(name: str, good: str, bad: str) -> None:
    check = getattr(import_module("django_celery_beat.validators"), f"{name}_validator")
    check(good)
    with pytest.raises(ValidationError):
        check(bad)
