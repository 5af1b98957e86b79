"""Which of our tables are there: new code may run for a while on a database that `migrate` has not reached yet.

A statement on a missing table would cost a caller's transaction on PostgreSQL, so whoever writes looks first. That a
table is there is remembered; that it is not is never, since `migrate` may run in another process at any moment.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from onebeat.store import tables, vendors

LABEL = "django_celery_beat"
#: What names the tables that are ours alone.
PREFIX = "onebeat_"

_seen: set[tuple[Any, ...]] = set()
#: While a `migrate` runs in this process tables come and go.
_migrating = False


def there(using: str, table: str) -> bool:
    """Whether a table of ours is there. Costs a statement until it is, and none afterwards."""
    link = vendors.connection(using)
    # By its name too, which test runners change, and by schema, of which some projects have one for each tenant.
    key = (using, str(link.settings_dict["NAME"]), getattr(link, "schema_name", None), table)
    if key in _seen:
        return True
    if not tables.has_table(using, table):
        return False
    if not _migrating:
        _seen.add(key)
    return True


def lacking(using: str) -> list[str]:
    """The tables and columns of ours that are not there, by name; empty when `migrate` has made all that this code
    needs.
    """
    found, missing = tables.columns(using, PREFIX), []
    for model in apps.get_app_config(LABEL).get_models():
        table = model._meta.db_table
        if not table.startswith(PREFIX):
            continue
        if table not in found:
            missing.append(table)
            continue
        fields = model._meta.local_concrete_fields
        missing += [f"{table}.{one.column}" for one in fields if one.column not in found[table]]
    return missing


def complete(using: str) -> bool:
    """Whether `migrate` has made all that this code needs. As `there`: remembered once it has."""
    link = vendors.connection(using)
    key = (using, str(link.settings_dict["NAME"]), getattr(link, "schema_name", None), "")
    if key in _seen:
        return True
    if lacking(using):
        return False
    if not _migrating:
        _seen.add(key)
    return True


def require(using: str) -> None:
    """Raises `ImproperlyConfigured` unless the database has all that this code needs: one look before the first
    statement, and no error in a caller's transaction.
    """
    if not complete(using):
        raise ImproperlyConfigured(
            f"the database {using!r} is not migrated: run `manage.py migrate`; missing: {', '.join(lacking(using))}"
        )


def migrate_begins(**kwargs: Any) -> None:
    """Receiver of `pre_migrate`."""
    global _migrating
    _migrating = True
    _seen.clear()


def migrate_ended(**kwargs: Any) -> None:
    """Receiver of `post_migrate`."""
    global _migrating
    _migrating = False
    _seen.clear()
