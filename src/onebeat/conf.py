"""onebeat's settings: one dict, `ONEBEAT = {...}`, in the project's settings, each key typed and with a safe
default.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings as django_settings
from django.core.signals import setting_changed


@dataclass(frozen=True, slots=True)
class Settings:
    """The keys of `ONEBEAT`. Durations are seconds unless the name says days."""

    #: The longest a scheduler sleeps before it looks for changes and due tasks again.
    poll_interval: float = 1.0
    #: How many due tasks are claimed in one transaction.
    batch_size: int = 500
    #: How many messages go to the broker between two checks of the lease.
    flush_size: int = 250
    #: Where something listens to Celery's publish signals: from how many messages on a flush uses the transport's own
    #: batch. Fewer go out one by one.
    plain_below: int = 50
    #: How long a claimed occurrence belongs to its scheduler. After a crash, another sends it when this has passed.
    lease_seconds: float = 30.0
    #: A scheduler not seen for this long counts as away; turns that pass while all are away are missed, not late.
    away_seconds: float = 8.0
    #: A turn later than this is missed even if schedulers were at work all the time.
    late_seconds: float = 60.0
    #: How often run counts and `last_run_at` are written to the task's row, for those who read them.
    run_state_seconds: float = 2.0
    #: How many tasks the sweep looks at in each poll for changes made past the ORM. 0 switches it off.
    sweep_size: int = 1000
    #: Whether `import django_celery_beat` means onebeat. Off, the app's name is `onebeat`, not `django_celery_beat`.
    import_alias: bool = True
    #: How many days occurrences are kept that were sent; 0: for ever.
    keep_days: float = 7.0
    #: How many days those that failed or were skipped are kept; 0: for ever.
    keep_failed_days: float = 30.0
    #: A file that each scheduler touches at every tick, for a probe that needs no database; empty: none.
    liveness_file: str = ""
    #: Whether workers record what becomes of each occurrence. Guarded tasks do so in any case.
    worker_signals: bool = True
    #: How long what a worker has seen of its runs waits at most before it is written, many runs together.
    record_seconds: float = 0.25
    #: Whether the start of a guarded task waits until the disk has it: "durable", or "async" (PostgreSQL).
    guard_commit: str = "durable"
    #: What a guarded task does when the database cannot be asked whether it has run: "run", or "raise" its error.
    guard_without_database: str = "run"
    #: Words that mark a key of arguments and headers as secret: the admin masks its value. Separated by spaces.
    secret_words: str = ""


#: The words that a key may have.
_CHOICES = {"guard_without_database": ("run", "raise"), "guard_commit": ("durable", "async")}


#: Every message of a batch is named in one statement, and a lost batch is sent again as a whole.
_LARGEST_BATCH = 10_000
#: Zero switches it off.
_MAY_BE_ZERO = ("sweep_size", "keep_days", "keep_failed_days")


def problems(raw: object) -> list[str]:
    """What is wrong with an `ONEBEAT` dict, one line for each fault; empty when nothing is."""
    if not isinstance(raw, dict):
        return [f"ONEBEAT must be a dict, not {type(raw).__name__}"]
    found = []
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    for key, value in raw.items():
        if key not in fields:
            found.append(f"unknown key {key!r}; known are {', '.join(sorted(fields))}")
            continue
        if isinstance(fields[key].default, bool):
            if not isinstance(value, bool):
                found.append(f"{key} must be True or False, not {value!r}")
            continue
        if key in _CHOICES:
            if value not in _CHOICES[key]:
                found.append(f"{key} must be {' or '.join(map(repr, _CHOICES[key]))}, not {value!r}")
            continue
        if isinstance(fields[key].default, str):
            if not isinstance(value, str):
                found.append(f"{key} must be a text, not {value!r}")
            continue
        whole = isinstance(fields[key].default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            number = "a whole number" if whole else f"a number of {'days' if key.endswith('_days') else 'seconds'}"
            found.append(f"{key} must be {number}, not {value!r}")
        elif value < 0 or (value == 0 and key not in _MAY_BE_ZERO):
            found.append(f"{key} must be above zero, not {value!r}")
        elif key == "batch_size" and value > _LARGEST_BATCH:
            found.append(f"{key} must be {_LARGEST_BATCH} at most, not {value!r}")
    if not found:
        given = Settings(**raw)
        if given.away_seconds < 2 * given.poll_interval:
            found.append(
                f"away_seconds ({given.away_seconds:g}) must be twice poll_interval ({given.poll_interval:g}) or more: "
                "a scheduler that sleeps so long would count as away"
            )
    return found


@lru_cache(maxsize=1)
def current() -> Settings:
    """The settings in force. Keys that are unknown or wrong are left at their default; `check` reports them."""
    raw = getattr(django_settings, "ONEBEAT", {})
    if not isinstance(raw, dict):
        return Settings()
    both = {"poll_interval", "away_seconds"}
    bad = {key for key in raw if key not in both and problems({key: raw[key]})}
    if problems({key: raw[key] for key in both & raw.keys()}):
        bad |= both
    return Settings(**{key: value for key, value in raw.items() if key not in bad})


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting == "ONEBEAT":
        current.cache_clear()


setting_changed.connect(_forget)
