"""Where it happens: throwaway servers, a database for each run, processes of each contestant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import services
from tests.databases import Database, admin_connection

from benchmarks import rivals

ROOT = Path(__file__).resolve().parent.parent
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
    settings: dict[str, Any] = field(default_factory=dict)

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
        }

    def connect(self) -> Any:
        """A plain connection to the database, in autocommit."""
        return admin_connection(self.database.url, self.name)

    def begin(self, verb: str, **given: Any) -> subprocess.Popen[str]:
        """Start a child."""
        return self.module("child", self.contestant, verb, json.dumps(given))

    def module(self, name: str, *args: str) -> subprocess.Popen[str]:
        """Start `python -m benchmarks.NAME` here."""
        return subprocess.Popen(
            [self.python, "-m", f"benchmarks.{name}", *args],
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
        self._templates: dict[str, str] = {}
        self._rivals: str | None = None

    def python(self, contestant: str) -> str:
        """The interpreter that has a contestant; the rivals' environment is made when it is first asked for."""
        if contestant == "onebeat":
            return sys.executable
        self._rivals = self._rivals or rivals.python()
        return self._rivals

    @contextmanager
    def place(self, contestant: str, *, broker: str = "redis", **settings: Any) -> Iterator[Place]:
        """A fresh database and queue for a contestant."""
        server, python = services.Broker(broker, services.url_of(broker)), self.python(contestant)
        url = server.fresh_broker_url()
        queue = f"bench-{uuid.uuid4().hex[:8]}"
        place = Place(contestant, python, self.database, self._template(contestant), url, queue, settings)
        place.name = self.database.create_database(place.name)
        try:
            yield place
        finally:
            self.database.drop_database(place.name)
            server.release(url, queue)

    def close(self) -> None:
        for name in self._templates.values():
            self.database.drop_database(name)

    def _template(self, contestant: str) -> str:
        if contestant not in self._templates:
            name = self.database.create_database()
            self._templates[contestant] = name
            place = Place(contestant, self.python(contestant), self.database, name, services.url_of("redis"), "none")
            done = subprocess.run(
                [place.python, "-m", "django", "migrate", "--verbosity=0"],
                env=place.env, cwd=ROOT, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                raise Failed(done.stderr[-1500:])
        return self._templates[contestant]
