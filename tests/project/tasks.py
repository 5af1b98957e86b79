"""Tasks that leave a trace a test can read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from celery import Task

from tests.project.celery import app

NOMINAL_HEADER = "onebeat_due_at"


@app.task(bind=True, name="tests.project.tasks.record")
def record(self: Task[Any, Any], key: str) -> None:
    """Append one JSON line to the file named by ONEBEAT_TEST_LOG; `read_log` reads them back."""
    line = {"key": key, "id": self.request.id, "due_at": self.request.get(NOMINAL_HEADER), "at": time.time()}
    log = os.open(os.environ["ONEBEAT_TEST_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        # One write to a file opened for appending: lines of several workers never mix.
        os.write(log, (json.dumps(line) + "\n").encode())
    finally:
        os.close(log)


@app.task(name="tests.project.tasks.add")
def add(x: float, y: float) -> float:
    return x + y


@app.task(name="tests.project.tasks.boom")
def boom() -> None:
    raise RuntimeError("boom")


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The lines `record` wrote, each a dict of key, id, due_at (the nominal time header or None) and at."""
    file = Path(path)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
