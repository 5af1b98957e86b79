"""The databases and brokers the tests run on: found, or started for this session.

For each service, in this order: the URL in its environment variable (ONEBEAT_TEST_POSTGRESQL_URL and so on);
a throwaway server if its program is installed; a server with default credentials at the default address.
(RabbitMQ: the last two the other way round, since a node takes long to start.) What was found is put back
into the environment variable, so that child processes and xdist's workers use the same server. An empty
variable means "leave this one out".

    python -m tests.services               what is there
    python -m tests.services COMMAND ...   runs a command with those servers in its environment
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tests import servers

DATABASES = ("sqlite", "postgresql", "mariadb")
BROKERS = ("redis", "rabbitmq")
SERVERS = ("postgresql", "mariadb", *BROKERS)
DEFAULT_URLS = {
    "postgresql": ("postgresql://postgres@127.0.0.1:5432/", "postgresql://root@127.0.0.1:5432/"),
    "mariadb": ("mysql://root@127.0.0.1:3306/",),
    "redis": ("redis://127.0.0.1:6379/0",),
    "rabbitmq": ("amqp://guest:guest@127.0.0.1:5672//",),
}
THROWAWAY: dict[str, Callable[[], servers.Server]] = {
    "postgresql": servers.postgresql,
    "mariadb": servers.mariadb,
    "redis": servers.redis,
    "rabbitmq": servers.rabbitmq,
}


class Missing(Exception):
    """A service that these tests cannot have here; the message says why."""


class Message(NamedTuple):
    headers: dict[str, Any]
    body: Any


def variable(name: str) -> str:
    return f"ONEBEAT_TEST_{name.upper()}_URL"


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
            connect_timeout=5,
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


def probe(url: str) -> None:
    """Raises whatever the client raises when the server at `url` does not answer."""
    scheme = urlsplit(url).scheme
    if scheme == "redis":
        import redis

        with redis.Redis.from_url(url, socket_connect_timeout=5) as server:
            server.ping()
    elif scheme == "amqp":
        from kombu import Connection

        # Not connect(), which waits two seconds and asks again.
        transport = Connection(url, connect_timeout=5).transport
        transport.close_connection(transport.establish_connection())
    else:
        admin_connection(url).close()


def _throwaway(name: str) -> str:
    server = THROWAWAY[name]()
    server.start(probe)
    return server.url


def _default(name: str) -> str:
    for url in DEFAULT_URLS[name]:
        try:
            probe(url)
        except Exception as error:
            reason = f"{url} does not answer: {error}"
        else:
            return url
    raise Missing(reason)


@functools.cache
def _locate(name: str) -> tuple[str, str]:
    """(URL, how it was found), or ("", why there is none). Asked once for each process."""
    given = os.environ.get(variable(name))
    if given is not None:
        if not given:
            return "", f"{variable(name)} is empty"
        try:
            probe(given)
        except Exception as error:
            return "", f"{variable(name)}: {error}"
        return given, "environment"
    ways = {"throwaway": _throwaway, "default address": _default}
    reasons = []
    for way in reversed(ways) if name == "rabbitmq" else ways:
        try:
            url = ways[way](name)
        except Exception as error:
            reasons.append(f"{way}: {' '.join(str(error).split())}")
        else:
            os.environ[variable(name)] = url
            return url, way
    os.environ[variable(name)] = ""
    return "", "; ".join(reasons)


def url_of(name: str) -> str:
    """The URL of a server, started if need be. Raises Missing with the reason."""
    url, how = _locate(name)
    if not url:
        raise Missing(f"{name}: {how}")
    return url


@functools.cache
def scratch_directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="onebeat-files-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
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
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(name + suffix).unlink(missing_ok=True)
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


@dataclass(frozen=True)
class Broker:
    """A message broker. `name` is the test id."""

    name: str
    url: str

    def fresh_broker_url(self) -> str:
        """A URL for one test alone: on Redis an empty database, claimed; give it back with `release`.

        On RabbitMQ the URL is the shared one (making virtual hosts needs administration rights), and tests
        keep apart by queue names: use a new name for each.
        """
        if self.name != "redis":
            return self.url
        import redis

        base = self.url.rsplit("/", 1)[0]
        with redis.Redis.from_url(f"{base}/0") as server:
            count = int(server.config_get("databases")["databases"])
        for number in range(1, count):
            with redis.Redis.from_url(f"{base}/{number}") as server:
                # The claim is written before the look, so two processes never share a database.
                if server.set("onebeat-test-claim", "1", nx=True):
                    if server.dbsize() == 1:
                        return f"{base}/{number}"
                    server.delete("onebeat-test-claim")
        raise Missing("redis: all its databases are in use")

    def release(self, url: str, *queues: str) -> None:
        """Forget what a test left at `url`: the whole database on Redis, the named queues on RabbitMQ."""
        if self.name == "redis":
            import redis

            with redis.Redis.from_url(url) as server:
                server.flushdb()
            return
        from kombu import Connection

        with Connection(url) as connection:
            for queue in queues:
                channel: Any = connection.channel()
                channel.queue_delete(queue)
                channel.exchange_delete(queue)

    def drain(self, url: str, queue: str) -> list[Message]:
        """Take every message that waits in the queue, oldest first. A queue that is not there has none."""
        from amqp.exceptions import NotFound
        from kombu import Connection, Queue

        messages: list[Message] = []
        with Connection(url) as connection, connection.channel() as channel:
            bound = Queue(queue, channel=channel)
            try:
                while (message := bound.get(no_ack=True, accept=["json"])) is not None:
                    messages.append(Message(dict(message.headers), message.decode()))
            except NotFound:
                pass
        return messages


VENDORS = {"sqlite": "sqlite", "postgresql": "postgresql", "mariadb": "mysql"}


def database(name: str) -> Database:
    """The database service of this name. Raises Missing with the reason, KeyError for an unknown name."""
    return Database(name, VENDORS[name], "sqlite://" if name == "sqlite" else url_of(name))


def databases() -> list[Database]:
    """The databases to be had here, SQLite first; servers are started at the first call."""
    return [database(name) for name in DATABASES if name == "sqlite" or _locate(name)[0]]


def brokers() -> list[Broker]:
    """The brokers to be had here; servers are started at the first call."""
    return [Broker(name, url_of(name)) for name in BROKERS if _locate(name)[0]]


def missing() -> dict[str, str]:
    """Name and reason of each service that is not to be had."""
    return {name: _locate(name)[1] for name in SERVERS if not _locate(name)[0]}


def asked() -> bool:
    """True if this process has looked for a server at all."""
    return _locate.cache_info().currsize > 0


def report() -> list[str]:
    """A line for each service: where it is and how it was found, or why it is left out."""
    lines = [f"{'sqlite':<11} files in a temporary directory"]
    for name in SERVERS:
        url, how = _locate(name)
        lines.append(
            f"{name:<11} {urlsplit(url).hostname}:{urlsplit(url).port} ({how})"
            if url
            else f"{name:<11} not run: {how}"
        )
    return lines


def main(command: list[str]) -> int:
    print(*(f"onebeat tests: {line}" for line in report()), sep="\n", flush=True)
    if missing() and os.environ.get("CI"):
        print(f"onebeat tests: CI is set, so {', '.join(missing())} must be there", file=sys.stderr)
        return 4
    if not command:
        return 0
    found = " ".join(each.name for each in databases())
    return subprocess.run(
        command, env={**os.environ, "ONEBEAT_TEST_DATABASES": found}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
