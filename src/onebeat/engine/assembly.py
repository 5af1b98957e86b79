"""What one scheduler is put together from. Tests and surfaces change a part here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onebeat.conf import Settings
from onebeat.dispatch.base import Dispatcher


def _go_on(point: str) -> None:
    """The default of `Assembly.at`."""


def _not_stopping() -> bool:
    return False


@dataclass(slots=True)
class Assembly:
    """The parts that a scheduler's engine works with."""

    dispatcher: Dispatcher
    settings: Settings
    #: The alias of the database.
    using: str = "default"
    #: Called with the name of each point between two steps: "claimed", "published", "settled". Tests stop there.
    at: Callable[[str], None] = _go_on
    #: Whether somebody wants the scheduler to end. It is asked between any two flushes.
    stopping: Callable[[], bool] = _not_stopping
