"""What several subcommands share."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from onebeat.dispatch.celery.app import find
from onebeat.errors import UnknownApp

#: The exit code for something that cannot be used: an app, a file, a database.
UNUSABLE = 2


def celery_app(name: str | None) -> Any:
    """The Celery app that `--app` names, else the current one, with its tasks registered. Exit code 2 if there is
    none.
    """
    try:
        return find(name, with_tasks=True)
    except UnknownApp as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
