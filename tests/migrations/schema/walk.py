"""Walks one app's migrations on an empty database, forwards and back, and prints what each step leaves.

Run by path, with any Python that has Django and the app: `python walk.py DATABASE APP LAST`, where DATABASE
is an entry of DATABASES as JSON. The answer is JSON on standard output:

    dependencies  the migrations each migration names
    up            for each step in Django's order, the tables it changed (null: it removed the table)
    back          the steps whose way back did not restore the tables as they were before
    branch        the tables after the older of the two branches at 0006 alone

Left out are names that Django makes from a hash, the order of columns (Django remakes SQLite's tables when
they change, and may order them otherwise) and what only this or that server version writes.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from typing import Any

LABEL = "django_celery_beat"
BRANCH = "0006_auto_20180210_1226"
Table = dict[str, list[str]]


def main(database: str, app: str, last: str) -> dict[str, Any]:
    import django
    from django.conf import settings

    settings.configure(DATABASES={"default": json.loads(database)}, INSTALLED_APPS=[app], USE_TZ=True, SECRET_KEY="-")
    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    def plan(target: str) -> list[Any]:
        return [migration for migration, _ in MigrationExecutor(connection).migration_plan([(LABEL, target)])]

    def step(migration: Any, backwards: bool) -> dict[str, Table]:
        MigrationExecutor(connection).migrate(None, plan=[(migration, backwards)])
        return tables(connection)

    steps = plan(last)
    names = [migration.name for migration in steps]
    up = [step(migration, False) for migration in steps]
    back = [step(migration, True) for migration in reversed(steps)]
    branch = [step(migration, False) for migration in plan(BRANCH)]
    return {
        "dependencies": {m.name: sorted(f"{app}.{name}" for app, name in m.dependencies) for m in steps},
        "up": dict(zip(names, changes({}, up), strict=True)),
        "back": [
            name
            for name, before, after in zip(reversed(names), [*reversed(up[:-1]), {}], back, strict=True)
            if before != after
        ],
        "branch": branch[-1],
    }


def changes(before: dict[str, Table], states: list[dict[str, Table]]) -> list[dict[str, Table | None]]:
    found = []
    for state in states:
        found.append({name: state.get(name) for name in sorted(state | before) if state.get(name) != before.get(name)})
        before = state
    return found


def tables(connection: Any) -> dict[str, Table]:
    """Each table's columns and its other rules, as lines of text."""
    describe = {"sqlite": sqlite, "postgresql": postgresql, "mysql": mysql}[connection.vendor]
    with connection.cursor() as cursor:
        names = [name for name in connection.introspection.table_names(cursor) if name.startswith(LABEL)]
        found = {name: describe(cursor, name) for name in sorted(names)}
    return {name: {part: sorted(lines) for part, lines in table.items()} for name, table in found.items()}


def line(*parts: object) -> str:
    return " ".join(str(part) for part in parts if part)


def rows(cursor: Any, sql: str, *params: object) -> list[Any]:
    cursor.execute(sql, params)
    return list(cursor.fetchall())


def sqlite(cursor: Any, table: str) -> Table:
    ((sql,),) = rows(cursor, "SELECT sql FROM sqlite_master WHERE name = %s", table)
    columns = [
        line(name, kind, "NOT NULL" * notnull, "PRIMARY KEY" * pk, default and f"DEFAULT {default}")
        for _, name, kind, notnull, default, pk in rows(cursor, f"PRAGMA table_info({table})")
    ]
    rules = [f"CHECK {check}" for check in re.findall(r'CHECK (\("\w+" >= 0\))', sql)]
    rules += ["AUTOINCREMENT"] * ("AUTOINCREMENT" in sql)
    rules += ["DEFERRABLE"] * sql.count("DEFERRABLE INITIALLY DEFERRED")
    for _, _, other, here, there, update, delete, _ in rows(cursor, f"PRAGMA foreign_key_list({table})"):
        rules.append(f"FOREIGN KEY {here} REFERENCES {other}.{there} ON UPDATE {update} ON DELETE {delete}")
    for _, index, unique, origin, _ in rows(cursor, f"PRAGMA index_list({table})"):
        covered = ", ".join(row[2] for row in rows(cursor, f"PRAGMA index_info({index})"))
        # Without its origin: Django has used both a constraint and CREATE UNIQUE INDEX for the same rule.
        rules.append(line("PRIMARY" * (origin == "pk"), "UNIQUE" * unique, f"INDEX ({covered})"))
    return {"columns": columns, "rules": rules}


def postgresql(cursor: Any, table: str) -> Table:
    columns = rows(
        cursor,
        """SELECT attname, format_type(atttypid, atttypmod), attnotnull, attidentity::text,
                  pg_get_expr(adbin, adrelid)
           FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
           WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped """,
        table,
    )
    constraints = rows(
        cursor,
        # Newer servers list NOT NULL here too; the columns have it already.
        """SELECT pg_get_constraintdef(oid) FROM pg_constraint
           WHERE conrelid = %s::regclass AND contype <> 'n'""",
        table,
    )
    indexes = rows(cursor, "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = %s::regclass", table)
    return {
        "columns": [
            line(name, kind, "NOT NULL" * notnull, identity and "IDENTITY", default and f"DEFAULT {default}")
            for name, kind, notnull, identity, default in columns
        ],
        "rules": [text for (text,) in constraints]
        + [re.sub(r"INDEX \S+ ON \S+ ", "INDEX ", text) for (text,) in indexes],
    }


def mysql(cursor: Any, table: str) -> Table:
    where = "table_schema = DATABASE() AND table_name = %s"
    columns = rows(
        cursor,
        f"""SELECT column_name, column_type, is_nullable, column_default, extra
            FROM information_schema.columns WHERE {where}""",
        table,
    )
    rules = [
        f"FOREIGN KEY {here} REFERENCES {other}.{there}"
        for here, other, there in rows(
            cursor,
            f"""SELECT column_name, referenced_table_name, referenced_column_name
                FROM information_schema.key_column_usage
                WHERE {where} AND referenced_table_name IS NOT NULL""",
            table,
        )
    ]
    indexes = defaultdict(list)
    for name, open_to_copies, column in rows(
        cursor,
        f"""SELECT index_name, non_unique, column_name FROM information_schema.statistics
            WHERE {where} ORDER BY index_name, seq_in_index""",
        table,
    ):
        kind = "PRIMARY KEY" if name == "PRIMARY" else "INDEX" if int(open_to_copies) else "UNIQUE INDEX"
        indexes[kind, name].append(column)
    rules += [f"{kind} ({', '.join(covered)})" for (kind, _), covered in indexes.items()]
    ((_, sql),) = rows(cursor, f"SHOW CREATE TABLE {table}")
    rules += [f"CHECK ({column} >= 0)" for column in re.findall(r"CHECK \(+`(\w+)` >= 0\)", sql)]
    return {
        "columns": [
            # Servers differ in the display width of numbers, and in whether "no default" is NULL or 'NULL'.
            line(
                name,
                re.sub(r"(int)\(\d+\)", r"\1", kind),
                "NOT NULL" * (nullable == "NO"),
                extra,
                default not in (None, "NULL") and f"DEFAULT {default}",
            )
            for name, kind, nullable, default, extra in columns
        ],
        "rules": rules,
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
