"""The task that chaos sends, and what its worker says: a line for each message that comes and each body that runs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Task, signals

from onebeat.celery import Guarded
from tests.project.celery import app
from tests.proof import shifted

NAME = "tests.proof.guarded.note"

if "ONEBEAT_TEST_LOG" in os.environ:  # this is the worker, on the same database as the others
    shifted.apply()


def _write(kind: str, header: Any, message: str, attempt: int) -> None:
    line = {"kind": kind, "occurrence": header, "id": message, "attempt": attempt, "at": time.time()}
    log = os.open(os.environ["ONEBEAT_TEST_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(log, (json.dumps(line) + "\n").encode())  # one write: lines never mix
    finally:
        os.close(log)


@signals.task_received.connect(weak=False)
def _received(request: Any, **kwargs: Any) -> None:
    headers = request.request_dict
    _write("message", headers.get("onebeat_task"), request.id, headers.get("retries") or 0)


@app.task(bind=True, base=Guarded, name=NAME)
def note(self: Task[Any, Any]) -> None:
    _write("body", self.request.get("onebeat_task"), self.request.id, self.request.retries)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
