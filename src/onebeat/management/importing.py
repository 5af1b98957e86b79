"""`manage.py onebeat import ...`: carry tasks over from elsewhere. Shows what it would do; writes with `--apply`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connections

from onebeat.errors import SourceUnavailable
from onebeat.importing import report
from onebeat.importing.carry import carry
from onebeat.importing.rows import Refused, Row
from onebeat.management.common import UNUSABLE, celery_app

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

    from onebeat.management.common import Subparsers

NAME = "import"
NEEDS_TABLES = False
Rows = Iterator[Row | Refused]
#: Where it is in words, what to warn of, how many there are, and the rows.
Source = tuple[str, list[str], int, Callable[[], Rows]]


def add(commands: Subparsers) -> list[CommandParser]:
    """Declare the subcommand, with one of its own for each source."""
    parser = commands.add_parser(
        NAME,
        help="carry tasks over from elsewhere; shows what it would do, and does it with --apply",
        description="Without --apply nothing is written. Exit code 1: something was or would not be carried; 2: the "
        "source or the database cannot be used.",
    )
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    settings = sources.add_parser("settings", help="the entries of CELERY_BEAT_SCHEDULE or of the Celery app")
    redbeat = sources.add_parser("redbeat", help="the Redis of celery-redbeat")
    redbeat.add_argument("--url", help="the URL of the Redis (default: redbeat_redis_url of the Celery app)")
    redbeat.add_argument("--prefix", help="redbeat_key_prefix (default: the Celery app's, else redbeat:)")
    database = sources.add_parser("database", help="another django-celery-beat database")
    database.add_argument("--from", dest="alias", required=True, help="its alias in DATABASES")
    for one in (settings, redbeat):
        one.add_argument("-A", "--app", help="the Celery app as module:attribute (default: the default app)")
    for one in (settings, redbeat, database):
        doing = one.add_mutually_exclusive_group()
        doing.add_argument("--apply", action="store_true", help="write it")
        doing.add_argument("--dry-run", action="store_true", help="only show what would be done (that is the default)")
        one.add_argument("--replace", action="store_true", help="overwrite tasks of the same name that differ")
    return [settings, redbeat, database]


def handle(
    command: BaseCommand,
    *,
    database: str,
    source: str,
    apply: bool,
    replace: bool,
    as_json: bool,
    verbosity: int,
    **options: object,
) -> None:
    """Print the report. Raises `CommandError` with the exit code unless all was carried."""
    if database not in connections:
        raise _unusable(f"--database {database}: there is no such alias in DATABASES")
    sources: dict[str, Callable[..., Source]] = {"settings": _settings, "redbeat": _redbeat, "database": _database}
    where, warnings, total, rows = sources[source](target=database, **options)
    results = carry(database, rows(), apply=apply, replace=replace)
    results = report.watched(results, total, partial(command.stderr.write, style_func=str))
    printed = report.as_json if as_json else report.as_text
    try:
        counts = printed(where, warnings, results, apply, verbosity, command.stdout.write)
    except SourceUnavailable as error:
        raise _unusable(f"{where}: {error}. What was written stays; run it again") from error
    except Error as error:
        raise _unusable(f"the database {database!r}: {error}. Is it migrated? What was written stays") from error
    if left := counts["kept"] + counts["refused"]:
        raise CommandError(f"{left:,} not carried", returncode=1)


def _unusable(text: str) -> CommandError:
    return CommandError(text, returncode=UNUSABLE)


def _settings(*, app: str | None, **options: object) -> Source:
    from onebeat.importing import settings

    where, declared = settings.entries(celery_app(app))
    return where, [], len(declared), partial(settings.rows, declared)


def _redbeat(*, url: str | None, prefix: str | None, app: str | None, **options: object) -> Source:
    from onebeat.importing.redbeat import Keys, without_password

    celery = celery_app(app)
    url = url or celery.conf.first("redbeat_redis_url", "REDBEAT_REDIS_URL")
    prefix = prefix or celery.conf.first("redbeat_key_prefix", "REDBEAT_KEY_PREFIX") or "redbeat:"
    if not url:
        raise _unusable("--url is needed, such as redis://localhost:6379/0: the Celery app has no redbeat_redis_url")
    shown = without_password(url)
    try:
        keys = Keys(url, prefix, celery.timezone)
        total, running = keys.count(), keys.running()
    except ImportError as error:
        raise _unusable("redis-py is needed: pip install redis") from error
    except Exception as error:  # redis-py's own, the socket's, or for a URL that is none
        raise _unusable(f"{shown}: {error}") from error
    locked = "redbeat's lock is held: stop its beat before you start onebeat, or both will send"
    return f"redbeat at {shown}", [locked] if running else [], total, keys.rows


def _database(*, alias: str, target: str, **options: object) -> Source:
    from onebeat.importing.database import Tables

    if alias not in connections:
        raise _unusable(f"--from {alias}: there is no such alias in DATABASES")
    if _place(alias) == _place(target):
        raise _unusable(f"--from {alias}: it is the database that is written to; `migrate` takes it over in place")
    try:
        tables = Tables(alias)
        return f"database {alias!r}", [], tables.count(), tables.rows
    except (Error, LookupError) as error:
        raise _unusable(f"--from {alias}: {error}") from error


def _place(alias: str) -> tuple[str, ...]:
    found = connections[alias].settings_dict
    return tuple(str(found[name]) for name in ("ENGINE", "HOST", "PORT", "NAME", "OPTIONS"))
