"""The environment that django-celery-beat and celery-redbeat run in: made once, kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

_WANTED = ("django-celery-beat==2.9.0", "celery-redbeat==2.4.2", "packaging")


def python() -> str:
    """Its interpreter. The same Celery, kombu and clients as ours, so that only the scheduler differs."""
    same = [f"{name}=={version(name)}" for name in ("celery", "kombu", "redis", "psycopg", "psycopg-binary")]
    wanted = [*_WANTED, *same]
    mark = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "onebeat-bench" / mark
    found = home / "bin" / "python"
    if not (home / "done").exists():
        print(f"making {home} for {', '.join(_WANTED[:2])}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
        (home / "done").touch()
    return str(found)


def versions(interpreter: str) -> dict[str, str]:
    """What is installed there, by name."""
    code = (
        "from importlib.metadata import version as v; import json;"
        "print(json.dumps({n: v(n) for n in ('django', 'celery', 'kombu', 'django-celery-beat', 'celery-redbeat')}))"
    )
    done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
