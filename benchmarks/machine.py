"""What the figures were taken on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def facts(connection: Any) -> dict[str, str]:
    """Processor, memory, load and versions. `connection`: an open one to the database."""
    models = [one for one in Path("/proc/cpuinfo").read_text().splitlines() if one.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().splitlines()[0].split()[1]
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        server = cursor.fetchone()[0].split()[0]
        cursor.execute("SHOW fsync")
        fsync = cursor.fetchone()[0]
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{len(os.sched_getaffinity(0))} x {models[0].split(':', 1)[1].strip() if models else '?'}",
        "memory": f"{int(memory) / 1024 / 1024:.0f} GiB",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "postgresql": f"{server}, fsync {fsync}",
        **{name: version(name) for name in ("django", "celery", "kombu", "redis", "psycopg")},
    }


@contextmanager
def fsync(connection: Any) -> Iterator[None]:
    """While it lasts the server, which was started without, waits for its disk at each commit."""
    try:
        _set_fsync(connection, "on")
        yield
    finally:
        _set_fsync(connection, "")


def _set_fsync(connection: Any, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SYSTEM SET fsync = {value}" if value else "ALTER SYSTEM RESET fsync")
        cursor.execute("SELECT pg_reload_conf()")
