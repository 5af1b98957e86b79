"""Which of our tables are there: new code may run for a while on a database that `migrate` has not reached yet.

A statement on a missing table would cost a caller's transaction on PostgreSQL, so whoever writes looks first. That a
table is there is remembered; that it is not is never, since `migrate` may run in another process at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from onebeat.db.expressions import quoted

LABEL = "django_celery_beat"
#: What names the tables that are ours alone.
PREFIX = "onebeat_"


class Known:
    """What this process has found to be there. The app's config owns it."""

    def __init__(self) -> None:
        self._found: set[tuple[str, str, str, str]] = set()
        #: While a `migrate` runs in this process tables come and go.
        self._migrating = False

    def holds(self, using: str, what: str, look: Callable[[], bool]) -> bool:
        """Whether `what` is there: asked of the database by `look` until it is, and remembered from then on."""
        link = connections[using]
        # By its name too, which test runners change, and by schema, of which some projects have one for each tenant.
        key = (using, str(link.settings_dict["NAME"]), str(getattr(link, "schema_name", "")), what)
        if key in self._found:
            return True
        found = look()
        if found and not self._migrating:
            self._found.add(key)
        return found

    def migrate_begins(self, **kwargs: object) -> None:
        """Receiver of `pre_migrate`."""
        self._migrating = True
        self._found.clear()

    def migrate_ended(self, **kwargs: object) -> None:
        """Receiver of `post_migrate`."""
        self._migrating = False
        self._found.clear()


class KnowsTables(Protocol):
    """What this module asks of the app's config."""

    known_tables: Known


def known() -> Known:
    """What this process knows of the tables."""
    return cast(KnowsTables, apps.get_app_config(LABEL)).known_tables


def there(using: str, table: str) -> bool:
    """Whether a table of ours is there. Costs a statement until it is, and none afterwards."""
    return known().holds(using, table, lambda: has_table(using, table))


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
    return known().holds(using, "complete", lambda: not lacking(using))


def require(using: str) -> None:
    """Raises `ImproperlyConfigured` unless the database has all that this code needs: one look before the first
    statement, and no error in a caller's transaction.
    """
    if not complete(using):
        raise ImproperlyConfigured(
            f"the database {using!r} is not migrated: run `manage.py migrate`; missing: {', '.join(lacking(using))}"
        )


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
