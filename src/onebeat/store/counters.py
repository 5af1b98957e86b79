"""How many messages this process has sent, and how many times it has skipped, by reason. Committed ones only.

A range of skipped times counts as one: it is one row of the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

from django.db import transaction

#: The word for those that were sent; the others are reasons.
SENT = "sent"

_tallies: dict[str, Counter[str]] = {}


def add(using: str, what: str, count: int = 1) -> None:
    """Count when the present transaction has committed, or at once where there is none."""
    transaction.on_commit(partial(_add, using, what, count), using=using)


def _add(using: str, what: str, count: int) -> None:
    _tallies.setdefault(using, Counter())[what] += count


def since(using: str, before: Mapping[str, int]) -> dict[str, int]:
    """What has been counted besides `before`; {} for that: since the process started."""
    now = _tallies.get(using, Counter())
    return {what: count - before.get(what, 0) for what, count in now.items() if count != before.get(what, 0)}
