"""Testing schedules: the real engine on the test's own database, under a clock that a test turns.

With pytest the fixture `onebeat` is there once the package is installed (pytest-django makes the database). With
unittest: `class TestReports(OnebeatMixin, TestCase)`, and then `self.onebeat`. Both are an `Onebeat`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onebeat.testing.kit import Onebeat, Sent
    from onebeat.testing.scheduler import Died, Outbox, Scheduler
    from onebeat.testing.unittests import OnebeatMixin

_PLACES = {
    "Died": "scheduler",
    "Onebeat": "kit",
    "OnebeatMixin": "unittests",
    "Outbox": "scheduler",
    "Scheduler": "scheduler",
    "Sent": "kit",
}
__all__ = ["Onebeat", "OnebeatMixin", "Sent", "Scheduler", "Outbox", "Died"]  # noqa: RUF022 (as one reads it)


def __getattr__(name: str) -> Any:
    # pytest imports the plugin before anybody has set Django up.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
