"""How long something that failed waits before it is tried again. Pure."""

from __future__ import annotations

from datetime import timedelta

_FIRST = timedelta(seconds=1)
_LONGEST = timedelta(seconds=60)


def retry_delay(failures: int) -> timedelta:
    """The wait after one more failure; `failures`: how many came before it. Doubles from 1 s and stays at 60 s."""
    return min(_FIRST * (1 << min(failures, 10)), _LONGEST)
