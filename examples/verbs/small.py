"""A Django project in one file, for the programs beside it: SQLite in a temporary folder, and a Celery app whose tasks
run where they are sent, so that no broker and no worker are needed. Your own project has these already.
"""

from __future__ import annotations

import atexit
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import django
from celery import Celery
from django.conf import settings
from django.core.management import call_command

folder = tempfile.TemporaryDirectory(prefix="onebeat-example-")
settings.configure(
    INSTALLED_APPS=["onebeat"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(Path(folder.name, "db.sqlite3")),
            "OPTIONS": {"transaction_mode": "IMMEDIATE"},
        }
    },
    USE_TZ=True,
)
django.setup()
call_command("migrate", verbosity=0)

app = Celery("small", broker="memory://", set_as_current=True)
app.conf.task_always_eager = True


@cache
def scheduler() -> Any:
    """One for the whole program. Its way out is the last thing."""
    from onebeat.conf import current
    from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
    from onebeat.engine.assembly import Assembly
    from onebeat.engine.tick import Engine

    engine = Engine(Assembly(CeleryDispatcher(app), current()))
    atexit.register(engine.close)
    return engine


def run_until(done: Callable[[], bool]) -> None:
    """What `celery -A proj beat -S onebeat` does, here until `done()`."""
    limit = time.monotonic() + 60
    while not done():
        if time.monotonic() > limit:
            raise SystemExit("this should not take a minute")
        time.sleep(min(scheduler().tick(), 0.1))
