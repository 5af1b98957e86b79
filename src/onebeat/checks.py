"""What `manage.py check` says about a project that uses onebeat."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning
from django.db import DatabaseError, connections, router

from onebeat import conf
from onebeat.db import database_clock, schema, transactions
from onebeat.declare import registry, sources
from onebeat.dispatch.celery import beat_settings
from onebeat.models import TaskOptions, TaskState
from onebeat.store import other_beat
from onebeat.takeover.alias import installed

_BUSY_SECONDS = 20


def check_settings(**kwargs: object) -> list[CheckMessage]:
    """The keys and values of `ONEBEAT`."""
    return [Error(line, id="onebeat.E001") for line in conf.problems(getattr(settings, "ONEBEAT", {}))]


def check_declarations(**kwargs: object) -> list[CheckMessage]:
    """The `schedules.py` of the apps can be imported, and what they declare can be kept."""
    try:
        sources.of_apps()
    except Exception as error:  # whatever a module raises
        hint = "Each schedules.py declares tasks with onebeat.recurring(...)."
        return [Error(f"what code declares cannot be read: {registry.failure(error)}", hint=hint, id="onebeat.E004")]
    return []


def check_old_distribution(**kwargs: object) -> list[CheckMessage]:
    """Both distributions are installed. Common, since others depend on django-celery-beat, and no harm in it."""
    try:
        found = version("django-celery-beat")
    except PackageNotFoundError:
        return []
    used = "onebeat" if installed() else "django-celery-beat"
    return [
        Info(
            f"django-celery-beat {found} is installed as well; `import django_celery_beat` gives {used}",
            hint="If nothing depends on it, uninstall it; else silence this line.",
            id="onebeat.I001",
        )
    ]


def check_sqlite(**kwargs: object) -> list[CheckMessage]:
    """SQLite's deferred transactions fail with "database is locked" where a wait would do."""
    found: list[CheckMessage] = []
    alias = router.db_for_write(TaskState)
    if (waits := transactions.busy_seconds(alias)) is not None:
        if transactions.begins_deferred(alias):
            found.append(
                Warning(
                    f"database {alias!r}: transactions of SQLite begin deferred and fail with "
                    "'database is locked' when two of them write",
                    hint='Set "transaction_mode": "IMMEDIATE" in the OPTIONS of the database.',
                    id="onebeat.W001",
                )
            )
        if waits < _BUSY_SECONDS:
            found.append(
                Warning(
                    f"database {alias!r}: SQLite gives up a locked database after {waits:g} s",
                    hint=f'Set "timeout": {_BUSY_SECONDS} in the OPTIONS of the database.',
                    id="onebeat.W002",
                )
            )
    return found


def check_overlap(databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Without the workers' word no run is ever seen to end, and each would stand in the way until its limit."""
    if conf.current().worker_signals:
        return []
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            rows = TaskOptions._base_manager.using(alias).filter(overlap=TaskOptions.Overlap.SKIP).order_by("pk")
            names = list(rows.values_list("task__name", flat=True)[:5])
        except DatabaseError:  # not migrated yet
            continue
        if names:
            found.append(
                Error(
                    f"database {alias!r}: overlap = skip needs worker_signals, which ONEBEAT switches off "
                    f"({', '.join(map(str, names))})",
                    hint="Switch worker_signals on, or let these tasks overlap.",
                    id="onebeat.E003",
                )
            )
    return found


def check_other_beat(databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Another beat is known to send the same tasks at this moment."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        if schema.lacking(alias):
            continue
        if other := other_beat.at_work(alias, database_clock.now(alias)):
            found.append(
                Warning(
                    f"database {alias!r}: {other} sends the same tasks; onebeat sends nothing meanwhile",
                    hint="Stop it. onebeat goes on by itself within a minute.",
                    id="onebeat.W003",
                )
            )
    return found


def check_autocommit(databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Nothing of a scheduler's work would be committed without autocommit."""
    return [
        Error(
            f"database {alias!r} has AUTOCOMMIT = False; a scheduler refuses to start on it",
            hint="Leave AUTOCOMMIT at True, Django's default, in the database's settings.",
            id="onebeat.E005",
        )
        for alias in databases or ()
        if not transactions.autocommits(alias)
    ]


def check_celery_settings(**kwargs: object) -> list[CheckMessage]:
    """Settings of Celery's about periodic tasks that somebody has changed and that have no effect under onebeat."""
    fault = beat_settings.deadline_fault()
    wrong: list[CheckMessage] = [Error(fault, hint="Give seconds, or None.", id="onebeat.E006")] if fault else []
    return wrong + [
        Warning(
            f"the Celery setting {name} has no effect under onebeat: {beat_settings.WITHOUT_EFFECT[name]}",
            hint="Remove it, or silence this line.",
            id="onebeat.W004",
        )
        for name in beat_settings.changed(beat_settings.WITHOUT_EFFECT)
    ]


def check_skip_locked(databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Several schedulers share the work by skipping what another has locked."""
    return [
        Error(
            f"database {alias!r} has no SELECT ... FOR UPDATE SKIP LOCKED",
            hint="onebeat needs MySQL 8.0.1, MariaDB 10.6 or later.",
            id="onebeat.E002",
        )
        for alias in databases or ()
        if connections[alias].features.has_select_for_update
        and not connections[alias].features.has_select_for_update_skip_locked
    ]
