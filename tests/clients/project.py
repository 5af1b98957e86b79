"""A client's project in a folder, and its commands, with one or both of the two distributions on its path."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests import services
from tests.clients.recipe import Recipe
from tests.processes import ROOT
from tests.test_readme import PROJECT

SETTINGS = """
import json
import os
{top}
SECRET_KEY = "only for tests"
USE_TZ = True
TIME_ZONE = "UTC"
DATABASES = {{"default": json.loads(os.environ["CLIENT_DATABASE"])}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    {apps}
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    {line}
    "shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {{
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        }},
    }}
]
ROOT_URLCONF = "proj.urls"
STATIC_URL = "static/"
ALLOWED_HOSTS = ["*"]
CELERY_BROKER_URL = "filesystem://"
CELERY_BROKER_TRANSPORT_OPTIONS = {{"data_folder_in": "out", "data_folder_out": "out", "control_folder": "control"}}
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
{settings}
"""
URLS = """
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    {urls}
    path("admin/", admin.site.urls),
]
"""
LINE = '"django_celery_beat",'


class Project:
    """`place` is what its processes have of the two distributions: a list of folders."""

    def __init__(self, recipe: Recipe, folder: Path, python: Path, place: list[Path]) -> None:
        self.recipe, self.folder, self.python, self.place = recipe, folder, python, place
        self.database = str(folder / "db.sqlite3")

    def write(self, top: str = "", line: str = LINE) -> None:
        """Write its files; these two are what the switch changes."""
        recipe = self.recipe
        settings = SETTINGS.format(top=top, line=line, apps=recipe.apps, settings=recipe.settings)
        files = {**PROJECT, "proj/urls.py": URLS.format(urls=recipe.urls), **dict(recipe.files)}
        files["browser_forms.py"] = (ROOT / "tests/admin/browser_forms.py").read_text()
        files = {name: text for name, text in files.items() if not (self.folder / name).exists()}
        files |= {name: text.format(top=top) for name, text in recipe.files if "{top}" in text}
        for name, text in {**files, "proj/settings.py": settings}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in ("out", "control"):
            (self.folder / name).mkdir(exist_ok=True)

    def copy(self, folder: Path, place: list[Path]) -> Project:
        """The same in another folder, with a copy of its database."""
        shutil.copytree(self.folder, folder)
        copied = Project(self.recipe, folder, self.python, place)
        if self.recipe.database != "sqlite":
            copied.database = services.database(self.recipe.database).create_database(template=self.database)
        return copied

    @property
    def env(self) -> dict[str, str]:
        kind = services.database(self.recipe.database)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "ONEBEAT", "PYTEST"))
        }
        path = [self.recipe.path.format(folder=self.folder), self.folder, *self.place, ROOT / "tests/clients"]
        given = {name: value.format(folder=self.folder) for name, value in self.recipe.env}
        return {
            **kept,
            **given,
            "CLIENT_DATABASE": json.dumps(kind.settings_dict(self.database)),
            "CLIENT_REDIS": os.environ.get(services.variable("redis"), ""),
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
        }

    def run(self, command: str, *more: str, cwd: Path | None = None, may_fail: bool = False) -> str:
        """Run it in the project and return what it printed. Raises AssertionError with that if it fails."""
        done = subprocess.run(
            [*shlex.split(command), *more], cwd=cwd or self.folder / self.recipe.cwd, env=self.env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert may_fail or done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def call(self, *names: str) -> Any:
        """Call these functions of the recipe, in one process. Returns what the last one returned."""
        calls = "; ".join(f"answer = recipe.{name}()" for name in names)
        code = f"import json; from recipes import {self.recipe.name} as recipe; {calls}; print(json.dumps(answer))"
        printed = self.run(f"{self.recipe.manage} shell -v 0 -c", code)
        return json.loads(printed.splitlines()[-1])

    def beat(self, command: str, until: Callable[[Callable[[], list[str]]], None]) -> list[str]:
        """Run a beat while until(sent) waits for what it wants; sent() is the names of what was sent so far.

        Returns them as they are once beat has stopped. An error fails with beat's own output.
        """
        for one in (self.folder / "out").iterdir():
            one.unlink()
        with (self.folder / "beat.log").open("w+") as log:
            started = subprocess.Popen(
                shlex.split(command),
                cwd=self.folder / self.recipe.cwd,
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

            def sent() -> list[str]:
                if started.poll() is not None:
                    raise AssertionError(f"{command} ended")
                return self.names()

            try:
                until(sent)
            except BaseException as error:
                raise AssertionError(f"{error}\n{Path(log.name).read_text()[-6000:]}") from error
            finally:
                started.send_signal(signal.SIGTERM)
                started.wait(timeout=60)
        return self.names()

    def names(self) -> list[str]:
        """The tasks of the messages that wait, oldest first."""
        found = []
        # A name of a message's file begins with the millisecond at which it was made.
        for one in sorted((self.folder / "out").glob("*.msg")):
            # A worker may have taken it, or beat has only begun to write it.
            with suppress(FileNotFoundError, json.JSONDecodeError):
                message = json.loads(one.read_text())
                found.append(self.recipe.name_of(message))
        return [name for name in found if name]

    def drop(self) -> None:
        """Take its database away."""
        if self.recipe.database != "sqlite":
            services.database(self.recipe.database).drop_database(self.database)
