"""The demo's processes: each in a process group of its own, on a leash, with a log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Fleet:
    """Starts processes, and lets none of them live longer than itself."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        """Run `python *command` in the demo's folder; what it prints goes to the log `name`."""
        with self.log(name).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "leash.py", *command],
                cwd=HERE,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def log(self, name: str) -> Path:
        """Where a process's output goes."""
        return self.logs / f"{name}.log"

    def alive(self) -> list[str]:
        """The names of those that run."""
        return [name for name, process in self.processes.items() if process.poll() is None]

    def stop(self, name: str, limit_seconds: float = 5) -> int:
        """Ask one to stop with SIGTERM; its exit code. One that does not is killed."""
        process = self.processes[name]
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(limit_seconds)
        self._kill(process)
        return process.wait()

    def freeze(self, name: str) -> bool:
        """Suspend one with SIGSTOP; returns whether it stands still, and did not end instead."""
        process = self.processes[name]
        process.send_signal(signal.SIGSTOP)
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
        except ChildProcessError:
            return False
        return os.WIFSTOPPED(status)

    def close(self) -> None:
        """End them all, and all that they started: politely first."""
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + 2
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in self.processes.values():
            self._kill(process)
            process.wait()

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        # The group: a worker's children too. It is gone already when everybody in it has ended.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
