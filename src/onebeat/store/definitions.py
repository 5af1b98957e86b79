"""What a task says now: one plain row for the engine, read in one statement, tolerant of whatever the tables hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple

from django.apps import apps
from django.db import DataError
from django.db.models import CharField, ExpressionWrapper, F, QuerySet

from onebeat.core.catchup import DEFAULT, Policy
from onebeat.core.recurrence import Recurrence, rule_of
from onebeat.db.reads import among, array, prepared
from onebeat.db.schema import LABEL
from onebeat.db.utc_columns import from_column
from onebeat.errors import InvalidSchedule, Unschedulable
from onebeat.models import PeriodicTask
from onebeat.models.celery_readings import CeleryReading, readings
from onebeat.models.instants import from_their_run, to_utc
from onebeat.models.options import policy

#: What is read: the task with its schedule, the fields of its crontab, its options; then when the row was saved last.
_TASK: tuple[str, ...] = (
    *("id", "name", "task", "args", "kwargs", "headers", "queue", "exchange", "routing_key", "priority"),
    *("expires", "expire_seconds", "one_off", "start_time", "enabled", "last_run_at", "total_run_count"),
    *("interval_id", "crontab_id", "solar_id", "clocked_id"),
    *("interval__every", "interval__period", "clocked__clocked_time"),
    *("solar__event", "solar__latitude", "solar__longitude"),
)
_CRON: tuple[object, ...] = (
    *("crontab__minute", "crontab__hour", "crontab__day_of_month"),
    *("crontab__month_of_year", "crontab__day_of_week"),
    ExpressionWrapper(F("crontab__timezone"), CharField()),  # the name as it is written, which the sweep compares
)


class _Options(NamedTuple):
    """A task's row of options; every value is None where it has none."""

    task_id: int | None
    missed: str
    grace_seconds: int | None
    jitter_seconds: int
    overlap: str
    overlap_limit_seconds: int
    paused: bool
    paused_until: datetime | None
    paused_by: str
    paused_why: str
    extra: str

    def policy(self) -> Policy:
        """What the options say; the defaults where there are none."""
        if self.task_id is None:
            return DEFAULT
        return policy(
            self.missed, self.grace_seconds, self.jitter_seconds, self.overlap, self.overlap_limit_seconds,
            self.paused, from_column(self.paused_until),
        )  # fmt: skip


_FIELDS: tuple[Any, ...] = (*_TASK, *_CRON, *(f"onebeat_options__{name}" for name in _Options._fields), "date_changed")
_CRON_AT = len(_TASK)
_OPTIONS_AT = _CRON_AT + len(_CRON)

#: The values that a plan depends on, in the order of `TaskState`'s columns of the same names.
COPIED = (
    *("enabled", "one_off", "interval", "crontab", "solar", "clocked"),
    *("rule", "clocked_time", "start_time", "expires"),
)

#: What the rule's text ends with if the row keeps the meaning that Celery gave it.
AS_CELERY = " celery"

#: What a value that no column of its kind should hold may raise on its way here: SQLite takes any value in any column,
#: PostgreSQL an infinite timestamp.
UNREADABLE = (DataError, ValueError, TypeError, ArithmeticError)
#: A number of seconds beyond this is no waiting time, and a date moved by it may be none either.
_LONGEST = timedelta(days=366_000)
#: What a value that is no list or no object is called. Its text is not shown: arguments may be secret.
_KINDS: dict[type, str] = {list: "a list", dict: "an object"}
_EMPTY = ("[]", "{}")


#: `args`, `kwargs` and `headers`.
Arguments = tuple[list[Any], dict[str, Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Definition:
    """A task with its schedule and policy, as it stood when it was read. Times are as people's columns hold them."""

    id: int
    name: str
    task: str
    args: str
    kwargs: str
    headers: str
    queue: str | None
    exchange: str | None
    routing_key: str | None
    priority: int | None
    expires: datetime | None
    expire_seconds: int | None
    one_off: bool
    start_time: datetime | None
    enabled: bool
    last_run_at: datetime | None
    total_run_count: int
    interval: int | None
    crontab: int | None
    solar: int | None
    clocked: int | None
    every: int | None
    period: str | None
    clocked_time: datetime | None
    event: str | None
    latitude: Decimal | None
    longitude: Decimal | None
    cron: tuple[Any, ...]
    policy: Policy
    #: More options of the message, as JSON text.
    extra: str = "{}"
    date_changed: datetime | None = None
    #: Why the row could not even be read; then only `id` and `name` are its own.
    broken: str = ""
    #: Who paused it, and why.
    paused_by: str = ""
    paused_why: str = ""
    #: What Celery made of the crontab row, where that is not what it says.
    reading: CeleryReading | None = None

    @property
    def rule(self) -> str:
        """The schedule's value as text, the same that the sweep computes in SQL; empty for a clocked one."""
        if self.crontab is not None:
            return " ".join(map(str, self.cron)) + (AS_CELERY if self.reading else "")
        if self.interval is not None:
            return f"{self.every} {self.period}"
        if self.solar is not None and self.latitude is not None and self.longitude is not None:
            return f"{self.event} {round(self.latitude * 1_000_000)} {round(self.longitude * 1_000_000)}"
        return ""

    def copied(self) -> tuple[object, ...]:
        """The values of `COPIED`."""
        return _copied(self)

    def ends(self) -> datetime | None:
        """The last instant at which a nominal time may lie."""
        return None if self.expires is None else to_utc(self.expires)

    def starts(self) -> datetime | None:
        """The first instant at which a nominal time may lie."""
        return None if self.start_time is None else to_utc(self.start_time)

    def clock(self) -> datetime | None:
        """The one instant of a clocked task; None for any other."""
        return None if self.clocked_time is None else to_utc(self.clocked_time)

    def last_run(self, *, by_the_old_beat: bool) -> datetime | None:
        """When the row says that the task ran last, read as onebeat or as django-celery-beat writes it."""
        if self.last_run_at is None:
            return None
        return (from_their_run if by_the_old_beat else to_utc)(self.last_run_at)

    def edited(self) -> datetime | None:
        """When the row was saved last."""
        return None if self.date_changed is None else to_utc(self.date_changed)

    def recurrence(self, anchor: datetime) -> Recurrence:
        """The task's recurrence; `anchor` is where an interval's grid begins unless the task has a `start_time`.

        Raises `Unschedulable` for a task with no schedule, several, or one that no rule can be read from.
        """
        kinds = [kind for kind in ("interval", "crontab", "solar", "clocked") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            what = f"has {', '.join(kinds)}" if kinds else "has no schedule"
            raise Unschedulable(
                f"schedule: the task {what}; exactly one of interval, crontab, solar, clocked is needed"
            )
        try:
            if self.reading is not None:
                return self.reading.cron()
            return rule_of(kinds[0], self._value(kinds[0]), self.starts() or anchor)
        except InvalidSchedule as error:
            raise Unschedulable(str(error) if error.field == kinds[0] else f"{kinds[0]}: {error}") from error

    def _value(self, kind: str) -> tuple[object, ...]:
        """The columns of the task's schedule. Raises `Unschedulable` for a clocked one that holds no time."""
        match kind:
            case "interval":
                return self.every, self.period
            case "crontab":
                return self.cron
            case "solar":
                return self.event, self.latitude, self.longitude
        if self.clocked_time is None:
            raise Unschedulable("clocked: the schedule of the task is gone or holds no time")
        return (to_utc(self.clocked_time),)

    def arguments(self) -> Arguments:
        """`args`, `kwargs` and `headers` decoded. Raises `Unschedulable` naming the field that is not what it must
        be.
        """
        return (
            _decoded("args", self.args, list),
            _decoded("kwargs", self.kwargs, dict),
            _decoded("headers", self.headers, dict),
        )

    def more_options(self) -> dict[str, Any]:
        """`extra` decoded. Raises `Unschedulable`."""
        found: dict[str, Any] = _decoded("extra", self.extra, dict)
        return found

    def check(self, anchor: datetime) -> Recurrence:
        """The task's recurrence if the task could be sent; raises `Unschedulable` otherwise."""
        if self.broken:
            raise Unschedulable(self.broken)
        self.arguments()
        self.more_options()
        if self.clocked is not None and not self.one_off:
            raise Unschedulable("one_off: a clocked task runs once; set one_off")
        return self.recurrence(anchor)


_copied: Callable[[Definition], tuple[object, ...]] = attrgetter(*COPIED)


def _decoded(name: str, text: str, kind: type) -> Any:
    if not text or text in _EMPTY:  # what most tasks have
        text = text or ("[]" if kind is list else "{}")
        if (text == "[]") is (kind is list):
            return kind()
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise Unschedulable(f"{name}: not JSON ({error})") from error
    if not isinstance(value, kind):
        found = _KINDS.get(type(value), "a single value")
        raise Unschedulable(f"{name}: must be a JSON {'list' if kind is list else 'object'}, not {found}")
    return value


def fetch(using: str, ids: Iterable[int]) -> dict[int, Definition]:
    """The tasks with these keys as they stand now; a key without a row is not in the answer.

    A row that cannot be read is in it all the same, as a definition that no check passes.
    """
    keys = list(ids)

    def rows() -> QuerySet[PeriodicTask]:
        return PeriodicTask._base_manager.using(using).filter(among(using, "pk", keys))

    try:
        read = prepared(using, "definitions", [array(keys)], lambda: rows().values_list(*_FIELDS))
        deadline = _deadline()
        found = {row[0]: _definition(row, deadline) for row in read}
        return _with_readings(using, found)
    except UNREADABLE:
        found = {}
    for key, name in rows().values_list("pk", "name"):
        try:
            row = rows().filter(pk=key).values_list(*_FIELDS).first()
            if row is not None:
                found[key] = _definition(row, _deadline())
        except UNREADABLE as error:
            found[key] = _broken(key, name, f"the row cannot be read: {error}")
    return _with_readings(using, found)


def _deadline() -> timedelta | None:
    """Celery's `beat_cron_starting_deadline`."""
    config: Any = apps.get_app_config(LABEL)
    seconds = config.cron_starting_deadline()
    return None if seconds is None else timedelta(seconds=seconds)


def _with_readings(using: str, found: dict[int, Definition]) -> dict[int, Definition]:
    crontabs = {one.crontab: one.cron for one in found.values() if one.crontab is not None}
    if kept := readings(using, crontabs):
        for key, one in found.items():
            if one.crontab in kept:
                found[key] = replace(one, reading=kept[one.crontab])
    return found


def _definition(row: Sequence[Any], deadline: timedelta | None) -> Definition:
    """`deadline`: the grace of a crontab task that has none of its own.

    Raises one of `UNREADABLE` for values that the engine could not go on with.
    """
    *values, date_changed = row
    options = _Options(*values[_OPTIONS_AT:])
    chosen, cron = options.policy(), tuple(values[_CRON_AT:_OPTIONS_AT])
    one = Definition(*values[:_CRON_AT], cron, chosen, options.extra or "{}", date_changed)  # type: ignore[call-arg]
    if options.task_id is not None:
        one = replace(one, paused_by=options.paused_by, paused_why=options.paused_why)
    if deadline is not None and chosen.grace is None and one.crontab is not None:
        one = replace(one, policy=replace(chosen, grace=deadline))
    one.copied()
    for value in (one.expires, one.start_time, one.last_run_at, one.clocked_time, one.date_changed):
        if value is not None:
            to_utc(value)
    lives = timedelta(seconds=one.expire_seconds or 0)
    if max(lives, chosen.jitter, chosen.overlap_limit, chosen.grace or lives) > _LONGEST:
        raise ValueError("a number of seconds is too large")
    if not (isinstance(one.enabled, bool) and isinstance(one.one_off, bool) and isinstance(one.total_run_count, int)):
        raise TypeError("enabled, one_off or total_run_count holds something else")
    return one


def gone(key: int, name: str) -> Definition:
    """What is left of a task that was deleted: its key, and the name that the ledger knows it by."""
    return _broken(key, name, "the task is gone")


def _broken(key: int, name: str, reason: str) -> Definition:
    nothing: tuple[Any, ...] = (None,) * 27
    blank = Definition(*nothing, (), DEFAULT)  # type: ignore[call-arg]
    return replace(blank, id=key, name=str(name), one_off=False, enabled=True, total_run_count=0, broken=reason)
