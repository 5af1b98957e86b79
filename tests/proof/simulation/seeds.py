"""Many seeds in one process with a database in memory, and one seed again."""

from __future__ import annotations

import gc
import logging
from typing import Any

import django
from django.core.management import call_command
from django.utils import timezone

from tests.proof.history import Finding


def prepare() -> None:
    """Once in a process."""
    django.setup()
    call_command("migrate", verbosity=0)
    # Queries leave little cyclic garbage; looking for it after each few hundred objects is a fifth of the work.
    gc.freeze()
    gc.set_threshold(50_000)


def run(first: int, count: int) -> list[str]:
    """Run seeds `first` to `first + count - 1`; a line for each that is not as it should be."""
    prepare()
    logging.disable()
    lines = []
    for seed in range(first, first + count):
        found = one(seed)
        if found:
            lines.append(
                f"make simulate SEED={seed}: {found[0]}" + (f" and {len(found) - 1} more" if found[1:] else "")
            )
    return lines


def one(seed: int) -> list[Any]:
    """What the checker found in one run, or the error that ended it."""
    try:
        return list(_run(seed)[0])
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def replay(seed: int) -> tuple[list[Finding], list[str]]:
    """One run again: what the checker found, and what happened."""
    prepare()
    return _run(seed)


def _run(seed: int) -> tuple[list[Finding], list[str]]:
    from tests.proof.simulation.scenario import Scenario

    made = Scenario(seed)
    timezone.now = lambda: made.world.now
    return made.run(), made.world.story
