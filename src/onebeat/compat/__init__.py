"""What programs written for django-celery-beat import and override. It can be taken out in one piece.

Under the import alias this package is the module `django_celery_beat`, and the modules in it are its submodules.
"""

from __future__ import annotations

from typing import NamedTuple


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
