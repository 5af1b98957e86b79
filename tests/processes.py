"""Functions run in other processes, with the database of a test as their default one.

A function is named by itself (a top-level function of a test module) or by "module:function". Its arguments
and its result travel as JSON. The processes use tests.project.settings and the environment that is given,
usually `database.env` (see conftest), on top of ours.
"""

from __future__ import annotations

import importlib
import json
import operator
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).resolve().parent.parent
Target = str | Callable[..., Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What one process did: `value` is its result, `error` the traceback, or how it died, else ""."""

    value: Any = None
    error: str = ""


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """Our environment with `env` on top, for a child that uses the test project."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.project.settings", "PYTHONPATH": str(ROOT), **env}


def run_python(env: Mapping[str, str], target: Target, *args: Any, limit_seconds: float = 60) -> Any:
    """Call target(*args) in a fresh Python. Returns its result; an error fails the test."""
    (outcome,) = _start(env, 0, target, args, limit_seconds)
    if outcome.error:
        pytest.fail(f"in another process: {outcome.error}")
    return outcome.value


def processes(n: int, env: Mapping[str, str], target: Target, *args: Any, limit_seconds: float = 120) -> list[Outcome]:
    """Call target(index, *args) in n processes at the same moment and return their outcomes by index.

    They are forked from one warm process that holds no connection. Each opens its own, then waits on a common
    barrier, so that they race from the first statement. A process over the limit is killed, and its outcome
    says so.
    """
    return _start(env, n, target, args, limit_seconds)


def manage(env: Mapping[str, str], *args: str, limit_seconds: float = 120) -> str:
    """Run `manage.py ...` and return what it printed. Fails with its errors if it does not exit with 0."""
    command = [sys.executable, "-m", "tests.project.manage", *args]
    done = subprocess.run(
        command,
        env=environment(env),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=limit_seconds,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"manage.py {' '.join(args)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def spawning(folder: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts `python *args` in the background, with the given environment. What is left is killed at the end.

    Its output goes to folder / "spawn-<number>.log", numbered from 0.
    """
    started: list[subprocess.Popen[bytes]] = []

    def start(env: Mapping[str, str], *args: str) -> subprocess.Popen[bytes]:
        with (folder / f"spawn-{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *args],
                env=environment(env),
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def eventually(condition: Callable[[], T], limit_seconds: float, what: str) -> T:
    """Wait until condition() is true and return its value. Fails with `what` after the limit."""
    limit, pause = time.monotonic() + limit_seconds, threading.Event()
    while not (value := condition()):
        if time.monotonic() > limit:
            pytest.fail(f"waited {limit_seconds:g} s in vain for: {what}")
        pause.wait(0.02)
    return value


def _start(env: Mapping[str, str], n: int, target: Target, args: tuple[Any, ...], limit: float) -> list[Outcome]:
    name = target if isinstance(target, str) else f"{target.__module__}:{target.__qualname__}"
    with tempfile.TemporaryDirectory(prefix="onebeat-run-") as folder:
        order = json.dumps({"n": n, "target": name, "args": args, "folder": folder})
        parent = subprocess.Popen(
            [sys.executable, "-m", "tests.processes", order],
            env=environment(env),
            cwd=ROOT,
            start_new_session=True,
        )
        late = ""
        try:
            parent.wait(limit)
        except subprocess.TimeoutExpired:
            late = f"killed after {limit:g} s"
        finally:
            if parent.poll() is None:
                os.killpg(parent.pid, signal.SIGKILL)
                parent.wait()
        return [_read(Path(folder, str(index)), late) for index in range(max(n, 1))]


def _read(path: Path, late: str) -> Outcome:
    if not path.exists():
        return Outcome(error=late or "the process died without an answer")
    return Outcome(**json.loads(path.read_text()))


def _answer(path: Path, call: Callable[[], Any]) -> None:
    try:
        text = json.dumps({"value": call()})
    except BaseException:
        text = json.dumps({"error": traceback.format_exc()})
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def _fork(path: Path, call: Callable[[], Any], ready: int, go: int) -> int:
    if pid := os.fork():
        return pid

    def race() -> Any:
        from django.db import connection

        try:
            connection.ensure_connection()
        finally:
            os.write(ready, b"r")  # also when it failed: the others wait for everybody
        os.read(go, 1)
        return call()

    _answer(path, race)
    os._exit(0)


def _run(n: int, target: str, args: list[Any], folder: Path) -> None:
    import django

    django.setup()
    module, _, name = target.partition(":")
    function = operator.attrgetter(name)(importlib.import_module(module))
    if not n:
        return _answer(folder / "0", lambda: function(*args))
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    children = [_fork(folder / str(i), partial(function, i, *args), ready_write, go_read) for i in range(n)]
    for _ in children:
        os.read(ready_read, 1)
    os.write(go_write, b"g" * n)
    for child in children:
        os.waitpid(child, 0)
    return None


def _main(n: int, target: str, args: list[Any], folder: str) -> None:
    try:
        _run(n, target, args, Path(folder))
    except Exception:
        error = json.dumps({"error": traceback.format_exc()})
        for index in range(max(n, 1)):
            Path(folder, str(index)).write_text(error)


if __name__ == "__main__":
    _main(**json.loads(sys.argv[1]))
