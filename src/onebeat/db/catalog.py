"""What the database's own catalog says: who refers to a table, which unique keys a column is part of, what was added.

Read from the catalog and not from Django's models, because a database also has tables that Django does not know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from django.apps.registry import Apps
from django.db import connections, models

from onebeat.db import expressions

#: How a column holds a whole number that is the key of another row.
Form = Literal["number", "text", "uuid"]


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique key of a table: its parts as SQL, and the condition (SQL) under which it holds; empty for always."""

    parts: tuple[str, ...]
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A column, of any table, that holds primary keys of ours."""

    #: As SQL, quoted, with its schema if it needs one.
    table: str
    column: str
    #: The unique keys that the column is part of.
    keys: tuple[UniqueKey, ...] = ()
    #: The column is part of the table's primary key: its rows are parts of ours (Django's multi-table children).
    identity: bool = False
    #: Of a generic foreign key: the column that says which table is meant, and what it says for ours.
    kind_column: str = ""
    kinds: tuple[int, ...] = ()
    #: How the column holds a whole number. Django keeps the key 5 in a UUIDField as UUID(int=5).
    form: Form = "number"
    #: The column's type, where the database wants a text to be cast to it before it is stored.
    cast: str = ""

    @property
    def name(self) -> str:
        """For people and for the record."""
        return f"{self.table}.{self.column}".replace('"', "").replace("`", "")

    def literal(self, key: int) -> str:
        """SQL for a key in the form in which it is compared and stored."""
        return {"number": f"{key}", "text": f"'{key}'", "uuid": f"'{key:032x}'"}[self.form]

    def key_sql(self, using: str, number: str) -> str:
        """The same for an expression that is a whole number."""
        if self.form == "number":
            return number
        return (expressions.hexadecimal if self.form == "uuid" else expressions.text)(using, number)

    def condition(self, using: str, alias: str, key: str) -> str:
        """SQL for "a row of the table, known as `alias`, refers to `key`", which has the form of `key_sql`."""
        column = f"{alias}.{expressions.quoted(using, self.column)}"
        if self.form != "number":
            column, key = (expressions.plain_text(using, expressions.text(using, each)) for each in (column, key))
        if self.form == "uuid":
            column = f"REPLACE(LOWER({column}), '-', '')"
        if not self.kind_column:
            return f"{column} = {key}"
        kinds = ", ".join(map(str, self.kinds))
        return f"{column} = {key} AND {alias}.{expressions.quoted(using, self.kind_column)} IN ({kinds})"


def references(using: str, table: str, pk: str, registries: Iterable[Apps] = ()) -> list[Reference]:
    """Every column that refers to `table`.`pk`: by the catalog, and by models whose key has no constraint in it."""
    vendor = connections[using].vendor
    found = {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}[vendor](using, table, pk)
    known = {(one.table, one.column) for one in found}
    for other, column in sorted(_unconstrained(using, table, registries)):
        if (expressions.quoted(using, other), column) not in known:
            keys, identity = _keys(using, other, column)
            found.append(Reference(expressions.quoted(using, other), column, keys, identity))
    return found


def generic_references(using: str, table: str, registry: Apps) -> list[Reference]:
    """Every column that refers to `table` by one of Django's generic foreign keys, which only its models know of."""
    types = "django_content_type"
    ours = {(model._meta.app_label, model._meta.model_name) for model in registry.get_models()
            if model._meta.db_table == table}  # fmt: skip
    if not ours or not registry.is_installed("django.contrib.contenttypes") or not exists(using, types):
        return []
    rows = _rows(using, f"SELECT id, app_label, model FROM {expressions.quoted(using, types)}")
    kinds = tuple(int(key) for key, *name in rows if tuple(name) in ours)
    return list(_generic(using, registry, kinds)) if kinds else []


def _generic(using: str, registry: Apps, kinds: tuple[int, ...]) -> Iterator[Reference]:
    from django.contrib.contenttypes.fields import GenericForeignKey

    for model in registry.get_models():
        meta = model._meta
        for generic in meta.private_fields:
            if not isinstance(generic, GenericForeignKey) or generic.model is not model or meta.proxy:
                continue
            kind, key = _column(model, generic.ct_field), _column(model, generic.fk_field)
            if exists(using, meta.db_table, key.column) and exists(using, meta.db_table, kind.column):
                link = connections[using]
                numbers = isinstance(key, models.IntegerField | models.DecimalField | models.FloatField)
                form: Form = "number" if numbers else "uuid" if isinstance(key, models.UUIDField) else "text"
                yield Reference(
                    expressions.quoted(using, meta.db_table),
                    key.column,
                    _keys(using, meta.db_table, key.column)[0],
                    kind_column=kind.column,
                    kinds=kinds,
                    form=form,
                    cast=(key.db_type(link) or "") if form != "number" and link.vendor == "postgresql" else "",
                )


# Any: whatever kind of field a model has there.
def _column(model: type[models.Model], name: str) -> Any:
    """The field of a model that is a column of its table."""
    return model._meta.get_field(name)


def exists(using: str, table: str, column: str = "") -> bool:
    """Whether there is a table (not a view) of this name, with this column if one is named."""
    # Not Django's introspection: it parses each table's whole statement on SQLite, and there are many models to ask of.
    vendor = connections[using].vendor
    name = expressions.quoted(using, table) if vendor == "postgresql" else table
    sql = {
        "postgresql": "SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped",
        "mysql": "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
        "AND table_name = %s AND table_name NOT IN "
        "(SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE())",
        "sqlite": "SELECT c.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c "
        "WHERE m.type = 'table' AND m.name = %s",
    }[vendor]
    names = {one for (one,) in _rows(using, sql, name)}
    return column in names if column else bool(names)


@dataclass(frozen=True, slots=True)
class Misfits:
    """Columns of a model's table with which its inserts cannot live: those that nobody here would fill, and those that
    are not there.
    """

    unfilled: list[str]
    missing: list[str]


def misfits(using: str, model: type[models.Model]) -> Misfits:
    """What was done to a model's table, which is there, past the model."""
    link, table = connections[using], model._meta.db_table
    with link.cursor() as cursor:
        there = {one.name: one for one in link.introspection.get_table_description(cursor, table)}
    ours = {str(field.column) for field in model._meta.local_concrete_fields}
    filled = ours | _made_by_the_server(using, table)
    unfilled = [
        name for name, column in there.items() if name not in filled and not column.null_ok and column.default is None
    ]
    return Misfits(unfilled, sorted(ours - there.keys()))


def _made_by_the_server(using: str, table: str) -> set[str]:
    """Columns that the server computes or counts itself."""
    if connections[using].vendor == "mysql":
        sql = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s "
            "AND (extra LIKE '%%GENERATED' OR extra LIKE '%%auto_increment%%')"
        )
    elif connections[using].vendor == "postgresql":
        sql = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND attidentity <> ''"
        table = expressions.quoted(using, table)
    else:
        return set()
    return {str(name) for (name,) in _rows(using, sql, table)}


def _rows(using: str, sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, params)
        return [tuple(row) for row in cursor.fetchall()]


def _unconstrained(using: str, table: str, registries: Iterable[Apps]) -> set[tuple[str, str]]:
    """Columns that Django's models call foreign keys to `table`; `db_constraint=False` hides them from the catalog."""
    found: set[tuple[str, str]] = set()
    for registry in registries:
        for model in registry.get_models(include_auto_created=True):
            for field in model._meta.local_concrete_fields:
                target = field.related_model if field.is_relation else None
                if isinstance(target, type) and issubclass(target, models.Model) and target._meta.db_table == table:
                    found.add((model._meta.db_table, str(field.column)))
    return {one for one in found if exists(using, *one)}


def _keys(using: str, table: str, column: str) -> tuple[tuple[UniqueKey, ...], bool]:
    """The unique keys that a column of a table of Django's is part of, and whether the primary key is one of them."""
    vendor = connections[using].vendor
    if vendor == "postgresql":
        return _postgresql_keys(using, expressions.quoted(using, table), column)
    if vendor == "mysql":
        return _mysql_keys(using, "", table, column)
    return _sqlite_keys(using, table, column)


# -- PostgreSQL ----------------------------------------------------------------------------------------------------


def _postgresql(using: str, table: str, pk: str) -> list[Reference]:
    # Of a partitioned table the root alone: its partitions follow.
    sql = """
        SELECT DISTINCT c.conrelid::regclass::text, a.attname::text
        FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = c.confkey[1]
        WHERE c.contype = 'f' AND c.conparentid = 0 AND cardinality(c.conkey) = 1
          AND c.confrelid = to_regclass(%s) AND b.attname = %s
        ORDER BY 1, 2
    """
    found = []
    for other, column in _rows(using, sql, expressions.quoted(using, table), pk):
        name = other if other.startswith('"') or "." in other else expressions.quoted(using, other)
        found.append(Reference(name, column, *_postgresql_keys(using, name, column)))
    return found


def _postgresql_keys(using: str, table: str, column: str) -> tuple[tuple[UniqueKey, ...], bool]:
    sql = """
        SELECT i.indisprimary, coalesce(pg_get_expr(i.indpred, i.indrelid), ''),
               ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, true) FROM generate_series(1, i.indnkeyatts) k)
        FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = %s
        WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND a.attnum = ANY (i.indkey)
    """
    rows = _rows(using, sql, column, table)
    plain = expressions.quoted(using, column)
    keys = [
        UniqueKey(tuple(plain if part in (column, plain) else part for part in parts), condition)
        for _, condition, parts in rows
    ]
    return tuple(keys), any(primary for primary, *_ in rows)


# -- MySQL, MariaDB ------------------------------------------------------------------------------------------------


def _mysql(using: str, table: str, pk: str) -> list[Reference]:
    sql = """
        SELECT DISTINCT table_schema, table_name, column_name, DATABASE()
        FROM information_schema.key_column_usage
        WHERE referenced_table_schema = DATABASE() AND referenced_table_name = %s AND referenced_column_name = %s
        ORDER BY 1, 2, 3
    """
    found = []
    for schema, other, column, here in _rows(using, sql, table, pk):
        name = expressions.quoted(using, other) if schema == here else ".".join(
            expressions.quoted(using, part) for part in (schema, other)
        )  # fmt: skip
        found.append(Reference(name, column, *_mysql_keys(using, schema, other, column)))
    return found


def _mysql_keys(using: str, schema: str, table: str, column: str) -> tuple[tuple[UniqueKey, ...], bool]:
    sql = """
        SELECT index_name, column_name FROM information_schema.statistics
        WHERE table_schema = COALESCE(NULLIF(%s, ''), DATABASE()) AND table_name = %s AND non_unique = 0
        ORDER BY index_name, seq_in_index
    """
    return _grouped(using, _rows(using, sql, schema, table), column)


def _grouped(using: str, rows: Iterable[tuple[Any, ...]], column: str) -> tuple[tuple[UniqueKey, ...], bool]:
    """Unique keys from (index, column) rows; the primary key's index is called PRIMARY."""
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for index, part in rows:
        parts[index].append(str(part))
    mine = {index: columns for index, columns in parts.items() if column in columns}
    keys = [UniqueKey(tuple(expressions.quoted(using, one) for one in columns)) for columns in mine.values()]
    return tuple(keys), "PRIMARY" in mine


# -- SQLite --------------------------------------------------------------------------------------------------------


def _sqlite(using: str, table: str, pk: str) -> list[Reference]:
    sql = """
        SELECT DISTINCT m.name, f."from" FROM sqlite_master m, pragma_foreign_key_list(m.name) f
        WHERE m.type = 'table' AND lower(f."table") = lower(%s) AND lower(coalesce(f."to", %s)) = lower(%s)
        ORDER BY 1, 2
    """
    return [
        Reference(expressions.quoted(using, other), column, *_sqlite_keys(using, other, column))
        for other, column in _rows(using, sql, table, pk, pk)
    ]


def _sqlite_keys(using: str, table: str, column: str) -> tuple[tuple[UniqueKey, ...], bool]:
    # An INTEGER PRIMARY KEY has no index. A partial index is left to the database itself: all is one transaction.
    sql = """
        SELECT 'PRIMARY', name FROM pragma_table_info(%s) WHERE pk > 0
        UNION ALL
        SELECT l.name, i.name FROM pragma_index_list(%s) l, pragma_index_info(l.name) i
        WHERE l."unique" AND NOT l.partial AND l.origin <> 'pk'
    """
    return _grouped(using, _rows(using, sql, table, table), column)
