"""What Celery's signals tell of the occurrences that a worker runs, handed to the recorder.

Tasks that no scheduler of onebeat has sent cost a look at their headers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from celery import signals, states
from celery.exceptions import Reject, SoftTimeLimitExceeded, TimeLimitExceeded, WorkerLostError

from onebeat.celery import attempt_start, message_attempt, outcomes
from onebeat.celery.guarding import Guarded
from onebeat.celery.recorder import recorder
from onebeat.conf import current
from onebeat.core import clock
from onebeat.core.attempts import Outcome
from onebeat.dispatch.celery import observers

#: So much of an error is kept until it is written: a column holds less.
_LONGEST = 1000
#: Messages of ours that this worker has in hand, by task id. Of a task that its process took with it, Celery tells the
#: main process only the id.
_received: WeakValueDictionary[str, Any] = WeakValueDictionary()


def install() -> None:
    """Connect when a worker starts, and not in web processes."""
    signals.worker_init.connect(_connect, dispatch_uid="onebeat.worker", weak=False)


def _connect(**kwargs: Any) -> None:
    for signal, handler in _HANDLERS.items():
        signal.connect(handler, dispatch_uid=f"onebeat.{handler.__name__}", weak=False)
    signals.worker_process_init.connect(_observe, dispatch_uid="onebeat.observers", weak=False)
    _observe()


def _observe(**kwargs: object) -> None:
    observers.in_worker()


def on_received(request: Any, **kwargs: Any) -> None:
    """A message has come; nothing is asked yet."""
    if message_attempt.of(request.request_dict) is not None:
        _received[request.id] = request


def on_prerun(task: Any, **kwargs: Any) -> None:
    """A guarded task records its start itself, when it knows that it may."""
    if not isinstance(task, Guarded) and current().worker_signals:
        attempt_start.record(task)


def on_success(sender: Any, **kwargs: Any) -> None:
    """The body returned."""
    _end(sender, sender.request, Outcome.SUCCESS)


def on_retry(sender: object, request: object, reason: object = None, **kwargs: object) -> None:
    """Another attempt is on its way. Without a reason: the worker has cancelled the task because it lost its broker,
    which delivers the same attempt again.
    """
    _end(sender, request, Outcome.REQUEUED if reason is None else Outcome.RETRY, reason)


def on_failure(sender: Any, task_id: str, exception: Any, **kwargs: Any) -> None:
    """The body raised; or, told by the main process, its process died or ran into a hard time limit."""
    request = sender.request
    if request.id != task_id:
        found = _received.get(task_id)
        if found is None:
            return
        request = found.request_dict
    kinds = {
        WorkerLostError: Outcome.LOST,
        TimeLimitExceeded: Outcome.TIMEOUT,
        SoftTimeLimitExceeded: Outcome.TIMEOUT,
        Reject: Outcome.REJECTED,
    }
    found_kinds = (outcome for kind, outcome in kinds.items() if isinstance(exception, kind))
    _end(sender, request, next(found_kinds, Outcome.FAILURE), exception)


def on_internal_error(sender: object, request: object, exception: object, **kwargs: object) -> None:
    """Celery itself failed around the body."""
    _end(sender, request, Outcome.FAILURE, exception)


def on_revoked(sender: object, request: object, terminated: bool, expired: bool, **kwargs: object) -> None:
    """Revoked or expired before it ran, or terminated while it did."""
    kind = Outcome.TERMINATED if terminated else Outcome.EXPIRED if expired else Outcome.REVOKED
    _end(sender, request, kind)


def on_unknown(message: Any, name: str, **kwargs: Any) -> None:
    """This worker has no such task: Celery discards the message."""
    _end(None, message.headers, Outcome.UNKNOWN, f"this worker has no task {name!r}")


def on_rejected(message: Any, exc: Any = None, **kwargs: Any) -> None:
    """A message that Celery cannot make sense of, and discards."""
    _end(None, message.headers, Outcome.INVALID, exc)


def on_postrun(task: Any, retval: Any, state: str | None, **kwargs: Any) -> None:
    """The two ways to leave a body that have no signal of their own."""
    if state == states.IGNORED:
        _end(task, task.request, Outcome.IGNORED, retval)
    elif state == states.REJECTED and getattr(retval, "requeue", False):
        _end(task, task.request, Outcome.REQUEUED)
    elif state == states.REJECTED:
        _end(task, task.request, Outcome.REJECTED, retval)


def on_exit(**kwargs: object) -> None:
    """A process ends: a worker's own, or one of its children, as after `max_tasks_per_child`."""
    recorder().close()


_HANDLERS: dict[Any, Callable[..., None]] = {
    signals.task_received: on_received,
    signals.task_prerun: on_prerun,
    signals.task_success: on_success,
    signals.task_retry: on_retry,
    signals.task_failure: on_failure,
    signals.task_internal_error: on_internal_error,
    signals.task_revoked: on_revoked,
    signals.task_unknown: on_unknown,
    signals.task_rejected: on_rejected,
    signals.task_postrun: on_postrun,
    signals.worker_process_shutdown: on_exit,
    signals.worker_shutdown: on_exit,
}


def _end(task: object, request: object, outcome: Outcome, why: object = None) -> None:
    """An attempt ends. A guarded task records that in any case: the guard goes by it."""
    if getattr(request, attempt_start.COPY, False):
        return
    outcomes.ended.send_robust(None, request=request, outcome=outcome)
    guarded = isinstance(task, Guarded)
    if not (current().worker_signals or guarded):
        return
    run = getattr(request, attempt_start.RUN, None)
    if run is None:
        attempt = message_attempt.of(request)
        if attempt is None:
            return
        run = attempt_start.run_of(request, attempt, guarded=guarded)
    run.end = clock.monotonic(), outcome, _text(why)[:_LONGEST]
    # What goes back to the broker may come at once, and the guard has to know that it may start.
    recorder().put(run, at_once=outcome == Outcome.REQUEUED)


def _text(why: object) -> str:
    if not isinstance(why, BaseException):
        return "" if why is None else str(why)
    try:
        text = str(why)
    except Exception:  # somebody's own class
        text = "(its text cannot be had)"
    return f"{type(why).__name__}: {text}" if text else type(why).__name__
