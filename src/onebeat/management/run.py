"""`onebeat run`: a scheduler without Celery's beat service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand

from onebeat.conf import current
from onebeat.management.common import celery_app

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "run"
#: A scheduler waits for the tables.
NEEDS_TABLES = False


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand."""
    parser = commands.add_parser(NAME, help="run a scheduler until SIGTERM or SIGINT")
    parser.add_argument(
        "-A", "--app", help="the Celery app as module:attribute; without it, the app that is set as default"
    )
    return [parser]


def handle(command: BaseCommand, *, database: str, app: str | None, **options: object) -> None:
    """Tick until told to stop; exit code 0."""
    from onebeat.declare import autosync
    from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
    from onebeat.engine.loop import new_loop

    celery = celery_app(app)
    dispatcher = CeleryDispatcher(celery, plain_below=current().plain_below)
    loop = new_loop(dispatcher, database, autosync.AtWork(database, lambda: autosync.of_scheduler(celery)).step)
    command.stdout.write(f"onebeat: sending to {celery.connection_for_write().as_uri()}; stop with Ctrl-C")
    with loop.stop.on_signals():
        loop.run()
    command.stdout.write("onebeat: stopped")
