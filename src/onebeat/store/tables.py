"""Which tables and columns are there. Never an error, which would cost a caller's transaction."""

from __future__ import annotations

from onebeat.store import vendors


def has_table(using: str, table: str) -> bool:
    """Whether there is a table of this name."""
    link = vendors.connection(using)
    sql = {
        "postgresql": "SELECT 1 WHERE to_regclass(%s) IS NOT NULL",
        "mysql": "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = %s",
        "sqlite": "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = %s",
    }[link.vendor]
    with link.cursor() as cursor:
        cursor.execute(sql, [vendors.quoted(using, table) if link.vendor == "postgresql" else table])
        return cursor.fetchone() is not None


def columns(using: str, prefix: str) -> dict[str, set[str]]:
    """The columns of each table whose name begins so, in one statement. `prefix`: letters and underscores."""
    link = vendors.connection(using)
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
