"""What onebeat makes of Celery's settings about periodic tasks. `docs/switch.md` has the same table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from celery.app.defaults import DEFAULTS

from onebeat.dispatch.celery.app import in_this_process

#: A thousand years, in seconds.
_LONGEST = 31_557_600_000

#: Settings that count, and for what.
HONOURED = {
    "beat_cron_starting_deadline": "the default of a crontab task's grace, in seconds",
    "beat_enable_remote_control": "Celery's beat service does it, as before; `manage.py onebeat run` has none",
    "beat_max_loop_interval": "the longest sleep between two ticks under `celery beat`, if it is below `poll_interval`",
    "beat_remote_control_max_tick_age": "as `beat_enable_remote_control`",
    "beat_schedule": "its entries are declared tasks, brought into the table",
    "beat_scheduler": "`onebeat`, or `django_celery_beat.schedulers:DatabaseScheduler`, which is onebeat's too",
    "result_expires": "if it is set, `celery.backend_cleanup` runs each day",
    "timezone": "the zone of crontabs that name none",
}
#: Settings that have no effect, and why not. `manage.py check` names those that somebody has changed.
WITHOUT_EFFECT = {
    "beat_schedule_filename": "the schedule is kept in the database, and there is no file",
    "beat_sync_every": "what was sent is recorded with each batch, and nothing is kept in memory to be synced",
}
#: Settings that have no effect on a scheduler, and keep theirs on workers or messages.
ELSEWHERE = {
    "broker_connection_max_retries": "a scheduler tries until its broker is back; for workers it counts as ever",
    "broker_connection_retry": "a scheduler tries until its broker is back; for workers it counts as ever",
    "broker_connection_retry_on_startup": "a scheduler tries until its broker is back; for workers it counts as ever",
    "enable_utc": "each crontab has a zone of its own, and instants are UTC; for messages it counts as ever",
}


def changed(names: Iterable[str]) -> list[str]:
    """Those of these settings that the process's Celery app has at another value than Celery's default."""
    app = in_this_process()
    return [] if app is None else [name for name in names if app.conf[name] != DEFAULTS[name]]


def cron_starting_deadline() -> float | None:
    """`beat_cron_starting_deadline` of the process's Celery app, in seconds; None if there is none, and for what is no
    number of seconds, which `manage.py check` names.
    """
    app = in_this_process()
    seconds = None if app is None else app.conf.beat_cron_starting_deadline
    return float(seconds) if _is_seconds(seconds) else None


def deadline_fault() -> str:
    """What is wrong with `beat_cron_starting_deadline`; empty if nothing is."""
    app = in_this_process()
    seconds = None if app is None else app.conf.beat_cron_starting_deadline
    if seconds is None or _is_seconds(seconds):
        return ""
    return f"the Celery setting beat_cron_starting_deadline must be a number of seconds, not {seconds!r}"


def _is_seconds(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LONGEST
