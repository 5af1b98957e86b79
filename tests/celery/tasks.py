"""Tasks for a real worker. Every body that runs adds a line to the file that ONEBEAT_TEST_LOG names."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from celery import Task, chain, chord, group
from celery.exceptions import Reject

from onebeat.celery import Guarded
from tests.processes import eventually
from tests.project.celery import app

LIMIT = 120


def ran(task: Any, key: str) -> None:
    """One write to a file opened for appending: lines of several processes never mix."""
    request = task.request
    line = {"key": key, "task": task.name, "retries": request.retries, "header": request.get("onebeat_task")}
    log = os.open(os.environ["ONEBEAT_TEST_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(log, (json.dumps(line) + "\n").encode())
    finally:
        os.close(log)


def released() -> None:
    """Wait until the test lets go."""
    eventually(Path(os.environ["ONEBEAT_TEST_LOG"] + "-go").exists, LIMIT, "the test to let go")


@app.task(bind=True, base=Guarded)
def note(self: Task[Any, Any], key: str) -> str:
    ran(self, key)
    return key


@app.task(bind=True)
def plain(self: Task[Any, Any], key: str) -> None:
    ran(self, key)


@app.task(bind=True)
def boom(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    raise RuntimeError("boom")


@app.task(bind=True, base=Guarded, max_retries=2)
def retries(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    if self.request.retries < 2:
        raise self.retry(countdown=0)


@app.task(bind=True, base=Guarded, autoretry_for=(ValueError,), max_retries=1, default_retry_delay=0)
def autoretries(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    raise ValueError("never right")


@app.task(bind=True, base=Guarded)
def replaces(self: Task[Any, Any], key: str, hands_on: bool) -> Any:
    ran(self, key)
    other = note.si(f"{key} instead")
    return self.replace(other.set(headers=dict(self.request.headers)) if hands_on else other)


@app.task(bind=True, base=Guarded)
def fans(self: Task[Any, Any], key: str, hands_on: bool) -> None:
    ran(self, key)

    def one(name: str) -> Any:
        made = note.si(f"{key} {name}")
        return made.set(headers=dict(self.request.headers)) if hands_on else made

    chord([one("in chord 1"), one("in chord 2")])(one("after chord"))
    group([one("in group 1"), one("in group 2")]).apply_async()
    chain(one("in chain 1"), one("in chain 2")).apply_async()
    one("alone").apply_async()


@app.task(bind=True, base=Guarded, acks_late=True)
def requeues(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    if Path(os.environ["ONEBEAT_TEST_LOG"]).read_text().count(f'"{key}"') == 1:
        raise Reject("not yet", requeue=True)


@app.task(bind=True, base=Guarded, acks_late=True)
def rejects(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    raise Reject("never", requeue=False)


@app.task(bind=True, base=Guarded)
def dies(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(bind=True, base=Guarded)
def waits(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    released()


@app.task(bind=True, base=Guarded, restart_after=1)
def waits_a_second(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    released()


@app.task(bind=True, acks_late=True)
def late(self: Task[Any, Any], key: str) -> None:
    """Guarded by its app alone."""
    ran(self, key)
    released()


@app.task(bind=True, acks_late=True, restart_after=1)
def late_again(self: Task[Any, Any], key: str) -> None:
    ran(self, key)
    released()
