"""Which of our tables are there: new code may run for a while on a database that `migrate` has not reached yet.

A statement on a missing table would cost a caller's transaction on PostgreSQL, so whoever writes looks first. That a
table is there is remembered; that it is not is never, since `migrate` may run in another process at any moment.
"""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from onebeat.db.expressions import quoted

LABEL = "django_celery_beat"
#: What names the tables that are ours alone.
PREFIX = "onebeat_"

_seen: set[tuple[Any, ...]] = set()
#: While a `migrate` runs in this process tables come and go.
_migrating = False


def there(using: str, table: str) -> bool:
    """Whether a table of ours is there. Costs a statement until it is, and none afterwards."""
    link = connections[using]
    # By its name too, which test runners change, and by schema, of which some projects have one for each tenant.
    key = (using, str(link.settings_dict["NAME"]), getattr(link, "schema_name", None), table)
    if key in _seen:
        return True
    if not has_table(using, table):
        return False
    if not _migrating:
        _seen.add(key)
    return True


def lacking(using: str) -> list[str]:
    """The tables and columns of ours that are not there, by name; empty when `migrate` has made all that this code
    needs.
    """
    found, missing = columns(using, PREFIX), []
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
    link = connections[using]
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


def has_table(using: str, table: str) -> bool:
    """Whether there is a table of this name."""
    link = connections[using]
    sql = {
        "postgresql": "SELECT 1 WHERE to_regclass(%s) IS NOT NULL",
        "mysql": "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s",
        "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = %s",
    }[link.vendor]
    with link.cursor() as cursor:
        cursor.execute(sql, [quoted(using, table) if link.vendor == "postgresql" else table])
        return cursor.fetchone() is not None


def columns(using: str, prefix: str) -> dict[str, set[str]]:
    """The columns of each table whose name begins so, in one statement. `prefix`: letters and underscores."""
    link = connections[using]
    sql = {
        "postgresql": "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relkind IN ('r', 'p') AND pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped "
        "AND starts_with(c.relname::text, %s)",
        "mysql": "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND LOCATE(%s, table_name) = 1",
        "sqlite": "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c "
        "WHERE m.type = 'table' AND instr(m.name, %s) = 1",
    }[link.vendor]
    found: dict[str, set[str]] = {}
    with link.cursor() as cursor:
        cursor.execute(sql, [prefix])
        for table, column in cursor.fetchall():
            found.setdefault(table, set()).add(column)
    return found
