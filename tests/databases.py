"""Making, copying and dropping databases on a server that is there, and the settings that lead to them."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sqlite3
import tempfile
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def admin_connection(url: str, db_name: str = "") -> Any:
    """A DB-API connection in autocommit to the server at `url`, by default to its administration database."""
    at = urlsplit(url)
    user, password = unquote(at.username or ""), unquote(at.password or "")
    if at.scheme.startswith("postgres"):
        import psycopg

        return psycopg.connect(
            host=at.hostname,
            port=at.port or 5432,
            user=user,
            password=password,
            dbname=db_name or "postgres",
            autocommit=True,
            connect_timeout=30,  # a busy machine, or a server that has just come back
        )
    import MySQLdb  # type: ignore[import-untyped]

    # An address, never "localhost": the client library would take that to mean the default socket.
    return MySQLdb.connect(
        host=at.hostname or "127.0.0.1",
        port=at.port or 3306,
        user=user,
        password=password,
        database=db_name,
        autocommit=True,
        charset="utf8mb4",
        connect_timeout=5,
    )


@functools.cache
def scratch_directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="onebeat-files-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _remove_sqlite(path: str) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(path + suffix).unlink(missing_ok=True)


def own_file() -> str:
    """The path of an SQLite file of this process, removed when it ends. Nothing is made until it is opened."""
    path = str(Path(tempfile.gettempdir()) / f"onebeat-{os.getpid()}.sqlite3")
    atexit.register(_remove_sqlite, path)
    return path


@dataclass(frozen=True)
class Database:
    """A place where databases can be made. `name` is ours (the test id), `vendor` is Django's word."""

    name: str
    vendor: str
    url: str

    def settings_dict(self, db_name: str) -> dict[str, Any]:
        """What belongs in DATABASES for the database `db_name` (SQLite: a path)."""
        if self.vendor == "sqlite":
            options: dict[str, Any] = {
                "transaction_mode": "IMMEDIATE",
                "timeout": 30,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            }
            return {"ENGINE": "django.db.backends.sqlite3", "NAME": db_name, "OPTIONS": options}
        at = urlsplit(self.url)
        return {
            "ENGINE": f"django.db.backends.{self.vendor}",
            "NAME": db_name,
            "HOST": at.hostname,
            "PORT": at.port or {"postgresql": 5432, "mysql": 3306}[self.vendor],
            "USER": unquote(at.username or ""),
            "PASSWORD": unquote(at.password or ""),
            "OPTIONS": {"charset": "utf8mb4"} if self.vendor == "mysql" else {},
            "TEST": {"CHARSET": "utf8mb4"} if self.vendor == "mysql" else {},
        }

    def create_database(self, template: str = "") -> str:
        """Make a new database, empty or a copy of `template` (nobody may be using it). Returns its name."""
        name = f"onebeat_{uuid.uuid4().hex[:12]}"
        if self.vendor == "sqlite":
            path = scratch_directory() / f"{name}.sqlite3"
            if template:
                shutil.copyfile(template, path)
            # By one process, now: two that switch a new file to WAL at once get "database is locked" at once.
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
            return str(path)
        if self.vendor == "postgresql":
            self._run(f"CREATE DATABASE {name} TEMPLATE {template or 'template0'}")
        else:
            self._run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
            if template:
                self._copy_mysql(template, name)
        return name

    def drop_database(self, name: str) -> None:
        """Remove it, with the connections that are still open to it."""
        if self.vendor == "sqlite":
            _remove_sqlite(name)
        elif self.vendor == "postgresql":
            self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        else:
            # An open transaction would hold the tables, and DROP would wait for it.
            query = f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"
            self._run(*(f"KILL {row[0]}" for row in self._run(query)), may_fail=True)
            self._run(f"DROP DATABASE IF EXISTS {name}")

    def _run(self, *statements: str, may_fail: bool = False) -> list[Any]:
        rows: list[Any] = []
        with closing(admin_connection(self.url)) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                try:
                    cursor.execute(statement)
                except Exception:
                    if not may_fail:
                        raise
                rows = list(cursor.fetchall()) if cursor.description else []
        return rows

    def _copy_mysql(self, source: str, target: str) -> None:
        with (
            closing(admin_connection(self.url, target)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            cursor.execute("SET foreign_key_checks = 0")
            cursor.execute(f"SHOW FULL TABLES FROM {source} WHERE Table_type = 'BASE TABLE'")
            for table, _ in cursor.fetchall():
                cursor.execute(f"SHOW CREATE TABLE {source}.`{table}`")
                cursor.execute(cursor.fetchall()[0][1])
                cursor.execute(
                    "SELECT column_name FROM information_schema.columns"
                    " WHERE table_schema = %s AND table_name = %s"
                    " AND COALESCE(generation_expression, '') = ''",
                    (source, table),
                )
                columns = ", ".join(f"`{row[0]}`" for row in cursor.fetchall())
                cursor.execute(f"INSERT INTO `{table}` ({columns}) SELECT {columns} FROM {source}.`{table}`")
