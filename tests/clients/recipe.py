"""A recipe as the story reads it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tests.clients import page, recipes

#: The command by which a project that has no better one starts its beat.
BEAT = "celery -A proj beat -S django_celery_beat.schedulers:DatabaseScheduler"


def name_of(message: dict[str, Any]) -> str | None:
    """The task's name in a message that beat sent."""
    name = message["headers"].get("periodic_task_name")
    return str(name) if name else None


@dataclass(frozen=True)
class Recipe:
    """One client. A field's name in capitals is the constant in its module.

    With SECTION, the title of a section of docs/switch.md, `top` or `line`, `there` and `back` are what that page says.
    """

    #: The module's name.
    name: str
    #: What pip installs, pinned; the client first.
    packages: tuple[str, ...]
    #: What is done with it in each of the three places, for the table.
    did: str
    #: Lines of INSTALLED_APPS, after django-celery-beat's.
    apps: str = ""
    #: Lines at the end of the settings.
    settings: str = ""
    #: Lines of urlpatterns, before the admin's.
    urls: str = ""
    #: Files of the project, in the place of the usual ones or beside them.
    files: tuple[tuple[str, str], ...] = ()
    #: What its processes have in their environment and on their path besides; {folder} is the project's.
    env: tuple[tuple[str, str], ...] = ()
    path: str = "{folder}"
    #: The folder in which its commands are run, in the project's.
    cwd: str = "."
    #: "sqlite", or "postgresql", whose settings are then in the environment (tests.clients.project).
    database: str = "sqlite"
    #: The switch: what comes to the top of the settings, or in the place of the line of INSTALLED_APPS.
    top: str = ""
    line: str = '"onebeat",'
    #: The project's own commands, and those of the switch and of the way back.
    manage: str = "python manage.py"
    migrate: str = "python manage.py migrate --verbosity=0"
    there: tuple[str, ...] = ("python manage.py onebeat adopt --check", "python manage.py migrate --verbosity=0")
    back: tuple[str, ...] = ("python manage.py onebeat handback",)
    #: One that makes the project, and one that is needed before the first `migrate`.
    start: str = ""
    prepare: str = ""
    beat: str = BEAT
    #: The task that a message is of.
    name_of: Callable[[dict[str, Any]], str | None] = name_of
    #: A command that runs the client's own tests, in the folder of its unpacked source distribution.
    own_tests: str = ""
    #: How far it came, where it was not seen to the end yet: it stands in the docs in the place of an answer.
    not_seen: str = ""
    #: Needs under about 15 seconds once it is installed, so it runs in CI.
    quick: bool = False

    @property
    def client(self) -> str:
        return self.packages[0].partition("==")[0]

    @property
    def row(self) -> list[str]:
        """Its row of the table in the docs."""
        answer = f"not seen yet: {self.not_seen}" if self.not_seen else "yes"
        return [self.client, self.version, answer, answer, self.did]

    @property
    def version(self) -> str:
        return self.packages[0].partition("==")[2]


def named(name: str) -> Recipe:
    """The recipe of this name."""
    module = importlib.import_module(f"{recipes.__name__}.{name}")
    known = {field.name.upper(): field.name for field in fields(Recipe)} | {"name_of": "name_of"}
    given = {known[key]: value for key, value in vars(module).items() if key in known and key != "NAME"}
    section = getattr(module, "SECTION", "")
    return Recipe(name=name, **given, **(page.section(section) if section else {}))


def every() -> list[Recipe]:
    """All of them, by the name of the client."""
    names = {found.name for found in pkgutil.iter_modules(recipes.__path__)} - {"kit"}
    return sorted((named(name) for name in names), key=lambda recipe: recipe.client)
