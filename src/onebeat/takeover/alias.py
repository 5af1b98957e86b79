"""`django_celery_beat` as a second name of onebeat's modules: the same module objects, so the same classes.

It stands before every other finder, so it also wins over an installed django-celery-beat. Nothing is imported here
but the standard library: this runs in the middle of settings and of Django's own set-up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

NAME = "django_celery_beat"
#: Where a submodule is looked for: what was written for the old names, then the app itself (migrations, commands).
_HOMES = ("onebeat.compat", "onebeat")


class Alias(MetaPathFinder):
    """Finds `django_celery_beat` and what is below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module that stands behind the name; None for a name that is not ours or has nothing behind it."""
        real = behind(fullname)
        return None if real is None else ModuleSpec(fullname, _Same(real), origin=real)


class _Same(Loader):
    """Loads a module by handing out the one that has the real name."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.real)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python has just put the alias' spec there. Reloading and relative imports go by the module's own.
        module.__spec__ = self.spec


def behind(fullname: str) -> str | None:
    """The real name of the module that `fullname` stands for; None if there is none."""
    if fullname == NAME:
        return _HOMES[0]
    if not fullname.startswith(f"{NAME}."):
        return None
    for home in _HOMES:
        real = home + fullname[len(NAME) :]
        try:
            if find_spec(real) is not None:
                return real
        except ModuleNotFoundError:  # its parent is not in this home
            continue
    return None


def install() -> None:
    """Make the alias. Modules of django-celery-beat that were imported before give way. May be called again."""
    if installed():
        return
    for name in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
        del sys.modules[name]
    sys.meta_path.insert(0, Alias())


def installed() -> bool:
    """Whether the alias is in force."""
    return any(isinstance(finder, Alias) for finder in sys.meta_path)
