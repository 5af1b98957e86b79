"""The Django application: onebeat's code under django-celery-beat's label, so that tables and names stay."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class OnebeatConfig(AppConfig):
    """The app `onebeat`. Its label keeps the table names, permissions and admin URLs a project has."""

    name = "onebeat"
    label = "django_celery_beat"
    # The tables being taken over have 32-bit keys; a project's DEFAULT_AUTO_FIELD must not change them.
    default_auto_field = "django.db.models.AutoField"
    verbose_name = _("Periodic Tasks")

    def ready(self) -> None:
        """Register the system checks."""
        from django.core.checks import Tags, register

        from onebeat import checks

        register(checks.check_settings)
        register(checks.check_sqlite, Tags.database)
        register(checks.check_skip_locked, Tags.database)
