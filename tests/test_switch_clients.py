"""Add-ons of django-celery-beat from PyPI, as they are, on a project that is switched to onebeat and back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.takeover import real
from tests.takeover.releases import environments
from tests.test_switch_page import ROWS, Site

#: Declares tasks by a decorator, and stores them whenever Django starts: also in the middle of `migrate`.
ADD_ONS = ["django-beat-periodic==0.6.0"]
TASKS = """
from django_beat_periodic.decorators import periodic_task


@periodic_task(interval=1, name="often")
def often() -> None: ...


@periodic_task(crontab="30 9 * * mon-fri", name="mornings")
def mornings() -> None: ...
"""
BEAT = "celery -A proj beat -S django_celery_beat.schedulers:DatabaseScheduler"
TWO = [["mornings", True], ["often", True]]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    try:
        made = Site(tmp_path, str(real.home()), environments.beside(ADD_ONS))
    except environments.NotHere as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT RUN: {reason}")
    (tmp_path / "shop/tasks.py").write_text(TASKS)
    # Before them: the decorators are run when the app is loaded, and stored when the add-on is ready.
    (tmp_path / "shop/apps.py").write_text(
        "from django.apps import AppConfig\n\n\nclass ShopConfig(AppConfig):\n    name = 'shop'\n\n"
        "    def ready(self):\n        import shop.tasks\n"
    )
    with (tmp_path / "proj/settings.py").open("a") as settings:
        settings.write('INSTALLED_APPS += ["shop", "django_beat_periodic"]\n')
    return made


@pytest.mark.slow
@pytest.mark.long
def test_add_ons_go_there_and_back(site: Site) -> None:
    site.run("python manage.py migrate --verbosity=0")
    assert stored(site) == TWO
    assert set(site.beat(BEAT)) == {"often"}

    site.write_line('"onebeat",')
    site.run("python manage.py migrate --verbosity=0")
    assert "often" in site.run("python manage.py list_periodic_tasks")
    assert set(site.beat(BEAT)) == {"often"}
    site.run("python manage.py disable_periodic_task mornings")

    site.run("python manage.py onebeat handback")
    site.write_line('"django_celery_beat",')
    site.run("python manage.py enable_periodic_task mornings")
    assert stored(site) == TWO
    assert set(site.beat(BEAT)) == {"often"}


def stored(site: Site) -> list[list[object]]:
    """(name, enabled) of the tasks that the code declares."""
    return [[name, enabled] for name, enabled, _ in site.shell(ROWS) if not name.startswith("celery.")]
