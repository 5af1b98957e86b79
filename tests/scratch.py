"""What a test gets to work with: a database of its own, and a queue of its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.databases import Database
from tests.processes import manage
from tests.services import Broker, Message


@dataclass
class Scratch:
    """One database for one test. `env` makes it the default database of a child process."""

    kind: Database
    name: str
    _connections: list[Any] = field(default_factory=list)

    @property
    def vendor(self) -> str:
        """Django's word: sqlite, postgresql or mysql."""
        return self.kind.vendor

    @property
    def settings(self) -> dict[str, Any]:
        return self.kind.settings_dict(self.name)

    @property
    def env(self) -> dict[str, str]:
        return {"ONEBEAT_TEST_DB": json.dumps(self.settings)}

    def connect(self) -> Any:
        """A new Django connection to it, in autocommit, closed after the test. Give each thread its own."""
        from django.db.utils import ConnectionHandler

        connection = allowed(ConnectionHandler({"default": self.settings})["default"])
        connection.inc_thread_sharing()
        self._connections.append(connection)
        return connection

    @classmethod
    @contextmanager
    def open(cls, kind: Database, template: str = "") -> Iterator[Scratch]:
        scratch = cls(kind, kind.create_database(template))
        try:
            yield scratch
        finally:
            for connection in scratch._connections:
                connection.close()
            kind.drop_database(scratch.name)


def allowed(connection: Any) -> Any:
    """A Django connection that may be used in tests: the class's own `ensure_connection` is forbidden by pytest-django,
    for the sake of the default database.
    """

    def ensure_connection() -> None:
        if connection.connection is None:
            connection.connect()

    connection.ensure_connection = ensure_connection
    return connection


class Templates:
    """One migrated database for each kind, made when first asked for, copied for each test."""

    def __init__(self) -> None:
        self._made: dict[Database, str] = {}

    def of(self, kind: Database) -> str:
        if kind not in self._made:
            template = Scratch(kind, kind.create_database())
            try:
                manage(template.env, "migrate", "--verbosity=0")
            except BaseException:
                kind.drop_database(template.name)
                raise
            self._made[kind] = template.name
        return self._made[kind]

    def drop(self) -> None:
        for kind, name in self._made.items():
            kind.drop_database(name)


@dataclass(frozen=True)
class Post:
    """One queue on one broker for one test. `env` makes it the default queue of a child process."""

    kind: Broker
    url: str
    queue: str

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def env(self) -> dict[str, str]:
        return {"ONEBEAT_TEST_BROKER": self.url, "ONEBEAT_TEST_QUEUE": self.queue}

    def drain(self) -> list[Message]:
        """Take every message that waits in the queue, oldest first."""
        return self.kind.drain(self.url, self.queue)

    @classmethod
    @contextmanager
    def open(cls, kind: Broker) -> Iterator[Post]:
        post = cls(kind, kind.fresh_broker_url(), f"onebeat-{uuid.uuid4().hex[:12]}")
        try:
            yield post
        finally:
            kind.release(post.url, post.queue)
