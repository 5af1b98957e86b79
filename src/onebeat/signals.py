"""Django signals for those who extend onebeat. Sent by whoever decided, after the commit and outside any transaction.

A scheduler sends them when the tick's messages are published and settled. A receiver that raises is logged and stops
nothing; a slow one makes the scheduler late. After a crash a signal may be missing, or come from the scheduler that
took over: keep what must be exact in the ledger (`onebeat.models.Occurrence`).

`task_sent`: the broker has the message. Arguments: `task` (the periodic task's name), `task_id` (its primary key),
`due_at` (the nominal time, UTC), `run` (0: the schedule's own), `occurrence_id`, `celery_task_id` (UUID).

`occurrence_skipped`: a nominal time, or a range of them, will not be sent. Arguments: `task`, `task_id`, `due_at`,
`last_due_at` (the last time of a range, else None), `run`, `reason` (one word), `detail`.

`task_quarantined`: a task was quarantined because it cannot be planned or sent as it is. Arguments: `task`, `task_id`,
`reason` (in words).

Each has `using`, the database's alias, as well. The sender is the class `Occurrence` of the first two and
`PeriodicTask` of the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import local

from django.db import transaction
from django.dispatch import Signal

__all__ = ["occurrence_skipped", "task_quarantined", "task_sent"]

task_sent = Signal()
occurrence_skipped = Signal()
task_quarantined = Signal()


class _Deferred(local):
    """The signals that this thread sends at the end of its outermost `deferred` block; None: it is in no such block."""

    signals: list[tuple[Signal, object, dict[str, object]]] | None = None


_deferred = _Deferred()


@contextmanager
def deferred() -> Iterator[None]:
    """Send the signals that are emitted in the block at its end, however it ends: receivers do not delay its work."""
    if _deferred.signals is not None:
        yield
        return
    waiting: list[tuple[Signal, object, dict[str, object]]] = []
    _deferred.signals = waiting
    try:
        yield
    finally:
        _deferred.signals = None
        for signal, sender, arguments in waiting:
            _send(signal, sender, arguments)


def emit(signal: Signal, sender: object, using: str, **arguments: object) -> None:
    """Send a signal when the present transaction has committed, or at once where there is none. Costs nothing without
    receivers."""
    if signal.has_listeners(sender):
        transaction.on_commit(partial(_committed, signal, sender, {"using": using, **arguments}), using=using)


def _committed(signal: Signal, sender: object, arguments: dict[str, object]) -> None:
    if _deferred.signals is None:
        _send(signal, sender, arguments)
    else:
        _deferred.signals.append((signal, sender, arguments))


def _send(signal: Signal, sender: object, arguments: dict[str, object]) -> None:
    signal.send_robust(sender=sender, **arguments)  # Django logs what a receiver raises
