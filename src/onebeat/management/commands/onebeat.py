"""`manage.py onebeat ...`: run a scheduler, and look at what schedulers do."""

from __future__ import annotations

import io
import json
from argparse import SUPPRESS
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.db import router

from onebeat.conf import current
from onebeat.management import check, explain, handback, health, importing, next_runs, prune, sync
from onebeat.management.common import celery_app

#: Subcommands that live in a module of their own: `add` declares its arguments, `handle` does it.
_MODULES = (check, explain, health, next_runs, prune, sync)


class Command(BaseCommand):
    """One command with subcommands; each has `--help` and, where it prints something, `--json`."""

    help = "Run an onebeat scheduler, or look at what the schedulers do."

    def add_arguments(self, parser: CommandParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        run = commands.add_parser("run", help="run a scheduler until SIGTERM or SIGINT")
        run.add_argument(
            "-A",
            "--app",
            help="the Celery app as module:attribute; without it, the app that is set as default",
        )
        status = commands.add_parser("status", help="show schedulers, what is due and what is quarantined")
        status.add_argument("--json", action="store_true", help="print one JSON object")
        adopt = commands.add_parser("adopt", help="show what taking over a django-celery-beat database merged")
        adopt.add_argument("--check", action="store_true", help="show what `migrate` would do; change nothing")
        adopt.add_argument("--json", action="store_true", help="print one JSON object")
        importing.arguments(commands)
        handing = handback.arguments(commands)
        self._modules = {module.NAME: module for module in _MODULES}
        for one in (run, status, adopt, handing, *(module.add(commands) for module in _MODULES)):
            one.add_argument("--database", help="the database alias (default: where the router puts the tasks)")
            # Django's own stands before the subcommand, where nobody looks for it.
            one.add_argument(
                *("-v", "--verbosity"),
                type=int,
                choices=(0, 1, 2, 3),
                default=SUPPRESS,
                help="0 prints errors and what --json asks for, and nothing else (default: 1)",
            )

    def handle(self, *args: Any, **options: Any) -> None:
        from onebeat.models import TaskState

        options["database"] = options["database"] or router.db_for_write(TaskState)
        name = options.pop("command")
        if name == "import":
            importing.run(self, **options)
            return
        if options["verbosity"] == 0 and not options.get("json"):
            self.stdout = OutputWrapper(io.StringIO())
        if name == "status" or name in self._modules:
            _migrated(options["database"])
        if (module := self._modules.get(name)) is not None:
            module.handle(self, **options)
        else:
            getattr(self, name)(**options)

    def run(self, *, app: str | None, database: str, **options: Any) -> None:
        """Tick until told to stop; exit code 0."""
        from onebeat.declare import autosync
        from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
        from onebeat.engine.loop import new_loop

        celery = celery_app(app)
        dispatcher = CeleryDispatcher(celery, plain_below=current().plain_below)
        loop = new_loop(dispatcher, database, autosync.AtWork(database, lambda: autosync.of_scheduler(celery)).step)
        self.stdout.write(f"onebeat: sending to {celery.connection_for_write().as_uri()}; stop with Ctrl-C")
        with loop.stop.on_signals():
            loop.run()
        self.stdout.write("onebeat: stopped")

    def status(self, *, database: str, **options: Any) -> None:
        """What the schedulers are doing."""
        from onebeat.management.status import lines
        from onebeat.queries.status import status

        found = status(database)
        if options["json"]:
            self.stdout.write(json.dumps(found, default=str))
            return
        for line in lines(found):
            self.stdout.write(line)

    def adopt(self, *, database: str, check: bool, **options: Any) -> None:
        """What `migrate` would merge, or what it merged. Exit code 1 if something stops it."""
        from onebeat.management import adopt
        from onebeat.takeover.arrive import record
        from onebeat.takeover.arrive.adopt import check as foreseen

        found = foreseen(database) if check else record.recorded(database)
        if options["json"]:
            self.stdout.write(json.dumps(found))
        else:
            for line in adopt.lines(found, done=not check):
                self.stdout.write(line)
        if found.get("stops"):
            raise CommandError("`migrate` would stop", returncode=1)

    def handback(self, **options: Any) -> None:
        """Give the tables back to django-celery-beat."""
        handback.run(self.stdout, **options)


def _migrated(using: str) -> None:
    """Exit code 1 where `migrate` has not been: what follows would end in the database's own words."""
    from onebeat.db import schema

    try:
        schema.require(using)
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from error
