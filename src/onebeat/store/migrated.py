"""Which of our tables are there: new code may run for a while on a database that `migrate` has not reached yet.

A statement on a missing table would cost a caller's transaction on PostgreSQL, so whoever writes looks first. That a
table is there is remembered; that it is not is never, since `migrate` may run in another process at any moment.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps

from onebeat.store import vendors

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
    if not vendors.has_table(using, table):
        return False
    if not _migrating:
        _seen.add(key)
    return True


def lacking(using: str) -> list[str]:
    """The tables and columns of ours that are not there, by name; empty when `migrate` has made all that this code
    needs.
    """
    link, missing = vendors.connection(using), []
    models = [one for one in apps.get_app_config(LABEL).get_models() if one._meta.db_table.startswith(PREFIX)]
    for model in models:
        table = model._meta.db_table
        if not vendors.has_table(using, table):
            missing.append(table)
            continue
        with link.cursor() as cursor:
            columns = {one.name for one in link.introspection.get_table_description(cursor, table)}
        missing += [f"{table}.{one.column}" for one in model._meta.local_concrete_fields if one.column not in columns]
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
