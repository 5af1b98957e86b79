"""What programs written for django-celery-beat import and override. It can be taken out in one piece.

Under the import alias this package is the module `django_celery_beat`, and the modules in it are its submodules.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from onebeat.takeover import alias


class version_info_t(NamedTuple):
    """A version in the shape that `django_celery_beat.VERSION` has."""

    major: int
    minor: int
    micro: int
    releaselevel: str
    serial: str


#: The release of django-celery-beat whose names are kept, for code that asks which one it has.
VERSION = version_info = version_info_t(2, 9, 0, "", "")
__version__ = "2.9.0"
__all__: list[str] = []


def __getattr__(name: str) -> ModuleType:
    """The app's own submodules, such as `migrations`: Python looks for them below this package's real name."""
    real = alias.behind(f"{alias.NAME}.{name}")
    if real is None or real.startswith(__name__):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(real)
