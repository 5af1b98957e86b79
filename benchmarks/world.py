"""Where it happens: throwaway servers, a database for each run, processes of each contestant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import rivals
from tests import services
from tests.databases import Database, admin_connection

ROOT = Path(__file__).resolve().parent.parent
#: As they stand in the names of figures; Redis and PostgreSQL are not named.
_NAMES = {"rabbitmq": "RabbitMQ", "mariadb": "MariaDB", "sqlite": "SQLite"}
APPS = {"onebeat": "onebeat", "celery_beat": "django_celery_beat", "redbeat": ""}


class Failed(Exception):
    """A process of a contestant ended without an answer; the message is the end of what it printed."""


@dataclass
class Place:
    """One database and one queue for one run of one contestant."""

    contestant: str
    python: str
    database: Database
    name: str
    broker: str
    queue: str
    #: `ONEBEAT` of the children that are started from now on.
    settings: dict[str, Any] = field(default_factory=dict)
    #: Whether the project has the admin.
    admin: bool = False
    #: The type of the exchange that the queue is bound to; empty: Celery's default.
    exchange: str = ""
    transport: dict[str, Any] = field(default_factory=dict)
    #: Who looks at each message; empty: nobody.
    observer: str = ""

    @property
    def env(self) -> dict[str, str]:
        """The environment of a child of this place."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "benchmarks.project.settings",
            "BENCH_APP": APPS[self.contestant],
            "BENCH_DB": json.dumps(self.database.settings_dict(self.name)),
            "BENCH_BROKER": self.broker,
            "BENCH_QUEUE": self.queue,
            "BENCH_SETTINGS": json.dumps(self.settings),
            "BENCH_ADMIN": "1" if self.admin else "",
            "BENCH_EXCHANGE": self.exchange,
            "BENCH_TRANSPORT": json.dumps(self.transport),
            "BENCH_OBSERVER": self.observer,
        }

    def connect(self) -> Any:
        """A plain connection to the database, in autocommit. For PostgreSQL: on SQLite there is no server to ask."""
        return admin_connection(self.database.url, self.name)

    def begin(self, verb: str, **given: Any) -> subprocess.Popen[str]:
        """Start a child."""
        return self.module("child", self.contestant, verb, json.dumps(given))

    def module(self, name: str, *args: str) -> subprocess.Popen[str]:
        """Start `python -m benchmarks.NAME` here."""
        return self.start("-m", f"benchmarks.{name}", *args)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start the contestant's Python here."""
        return subprocess.Popen(
            [self.python, *args],
            env=self.env,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, verb: str, **given: Any) -> dict[str, Any]:
        """Start a child and wait for its answer."""
        return answer(self.begin(verb, **given))


def answer(child: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line of a child, decoded."""
    out, _ = child.communicate()
    if child.returncode:
        raise Failed(out[-1500:])
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


class World:
    """Everything that the measures share."""

    def __init__(self) -> None:
        self.database = services.database("postgresql")
        self._templates: dict[tuple[str, str, bool], Place] = {}
        self._rivals: str | None = None

    def python(self, contestant: str) -> str:
        """The interpreter that has a contestant; the rivals' environment is made when it is first asked for."""
        if contestant == "onebeat":
            return sys.executable
        self._rivals = self._rivals or rivals.python()
        return self._rivals

    @contextmanager
    def place(
        self, contestant: str, *, broker: str = "redis", database: str = "postgresql", admin: bool = False, **more: Any
    ) -> Iterator[Place]:
        """A fresh database and queue for a contestant. `more`: other fields of `Place`."""
        template = self._template(contestant, database, admin)
        server = services.Broker(broker, services.url_of(broker))
        url = server.fresh_broker_url()
        queue = f"bench-{uuid.uuid4().hex[:8]}"
        place = replace(template, broker=url, queue=queue, **more)
        place.name = place.database.create_database(template.name)
        try:
            yield place
        finally:
            place.database.drop_database(place.name)
            server.release(url, queue)

    @staticmethod
    def suffix(**where: Any) -> str:
        """What the name of a figure ends in that was taken at such a place."""
        return "".join(f", {_NAMES[one]}" for one in where.values() if one in _NAMES)

    def close(self) -> None:
        for place in self._templates.values():
            place.database.drop_database(place.name)

    def _template(self, contestant: str, name: str, admin: bool) -> Place:
        key = (contestant, name, admin)
        if key not in self._templates:
            database = self.database if name == self.database.name else services.database(name)
            place = Place(contestant, self.python(contestant), database, "", services.url_of("redis"), "none")
            place.name, place.admin = database.create_database(), admin
            self._templates[key] = place
            child = place.start("-m", "django", "migrate", "--verbosity=0")
            out, _ = child.communicate()
            if child.returncode:
                raise Failed(out[-1500:])
        return self._templates[key]
