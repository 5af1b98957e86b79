"""The Django application: onebeat's code under django-celery-beat's label, so that tables and names stay."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from onebeat import conf
from onebeat.db import schema
from onebeat.takeover import alias

if conf.current().import_alias:
    alias.install()


class OnebeatConfig(AppConfig):
    """The app `onebeat`. Its label keeps the table names, permissions and admin URLs a project has."""

    # By this name `apps.is_installed("django_celery_beat")` and its like ask; it is imported, so it needs the alias.
    name = alias.NAME if alias.installed() else "onebeat"
    # Templates, static files, translations and commands are looked for here, whatever the name.
    path = str(Path(__file__).parent)
    label = "django_celery_beat"
    # The tables being taken over have 32-bit keys; a project's DEFAULT_AUTO_FIELD must not change them.
    default_auto_field = "django.db.models.AutoField"
    verbose_name = _("Periodic Tasks")
    #: Which tables of ours are there; see `onebeat.db.schema`.
    known_tables = schema.Known()

    def celery_schedule(self, kind: str, *value: object) -> object:
        """A schedule as Celery's own object, for code that reads `.schedule`; models know no Celery, so they ask here.

        `kind`: "interval", "crontab", "solar" or "clocked"; `value`: its fields in the order of the model's `VALUE`.
        """
        from onebeat.dispatch.celery import schedules

        return schedules.of_value(kind, *value)

    def celery_timezone(self) -> str | None:
        """The name of the zone in the Celery app's `timezone` setting; None if there is none."""
        from onebeat.dispatch.celery.app import settings_prefix

        name = getattr(settings, f"{settings_prefix()}_TIMEZONE", None)
        return name if isinstance(name, str) else None

    def cron_starting_deadline(self) -> float | None:
        """The Celery app's `beat_cron_starting_deadline` in seconds; None if it is not set."""
        from onebeat.dispatch.celery import beat_settings

        return beat_settings.cron_starting_deadline()

    def ready(self) -> None:
        """Register the system checks, the look at the tables before a `migrate` that adopts them, the sync of what
        code declares after it, and what a worker tells of its tasks.
        """
        from django.core.checks import Tags, register
        from django.db.models.signals import post_migrate, pre_migrate

        from onebeat import checks
        from onebeat.celery import worker
        from onebeat.declare import autosync
        from onebeat.models import fixtures
        from onebeat.takeover.arrive import adopt
        from onebeat.takeover.leave import unconstrain

        worker.install()
        pre_migrate.connect(self.known_tables.migrate_begins, sender=self)
        pre_migrate.connect(adopt.before_migrate, sender=self)
        post_migrate.connect(self.known_tables.migrate_ended, sender=self)
        post_migrate.connect(unconstrain.restore, sender=self)
        post_migrate.connect(autosync.after_migrate, sender=self)
        fixtures.connect()
        register(checks.check_settings)
        register(checks.check_declarations)
        register(checks.check_old_distribution)
        register(checks.check_sqlite)
        register(checks.check_celery_settings)
        register(checks.check_skip_locked, Tags.database)
        register(checks.check_autocommit, Tags.database)
        register(checks.check_overlap, Tags.database)
        register(checks.check_other_beat, Tags.database)
