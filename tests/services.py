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

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests import servers
from tests.databases import Database, admin_connection

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
            f"{name:<11} {urlsplit(url).hostname}:{urlsplit(url).port} ({how})" if url else f"{name:<11} not run: {how}"
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
    return subprocess.run(command, env={**os.environ, "ONEBEAT_TEST_DATABASES": found}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
