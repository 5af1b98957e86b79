"""The keys of celery-redbeat: a hash for each entry, and a sorted set that names those it runs.

Of a hash, `definition` is the entry as JSON and `meta` is when it ran. Instants and schedules in it are objects with a
`__type__`. Written from what celery-redbeat 2.4 stores; the format is the same since its first releases on Celery 4.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import islice
from typing import Any

from celery import schedules
from django.core.exceptions import ValidationError
from kombu.utils.url import maybe_sanitize_url

from onebeat.core.recurrence import zone
from onebeat.errors import SourceUnavailable
from onebeat.importing.rows import Refused, Row, crontab, of_celery, of_entry, read_row
from onebeat.models.instants import from_utc
from onebeat.models.schedule_value import ScheduleValue

#: How many entries are asked for at once.
_PORTION = 500
_SECONDS = 30  # that Redis may take for an answer


class Keys:
    """celery-redbeat's keys under one prefix. Nothing is written to Redis."""

    def __init__(self, url: str, prefix: str, tz: object) -> None:
        """`tz`: the zone in which redbeat's beat ran, since its crontabs name none. Raises what redis-py raises if the
        server does not answer, ImportError without redis-py, ValueError for a URL that is none.
        """
        from redis import Redis

        self._redis: Any = Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS)
        self._prefix, self._tz = prefix, tz
        self._redis.ping()

    def count(self) -> int:
        """How many entries redbeat runs."""
        return int(self._redis.zcard(f"{self._prefix}:schedule"))

    def running(self) -> bool:
        """Whether a beat of redbeat holds its lock at this moment."""
        return bool(self._redis.exists(f"{self._prefix}:lock"))

    def rows(self) -> Iterator[Row | Refused]:
        """One for each entry that redbeat runs. Raises `SourceUnavailable`."""
        from redis.exceptions import RedisError

        try:
            static = {name.decode(errors="replace") for name in self._redis.smembers(f"{self._prefix}:statics")}
            keys = (key for key, _ in self._redis.zscan_iter(f"{self._prefix}:schedule", count=_PORTION))
            while portion := list(islice(keys, _PORTION)):
                pipe = self._redis.pipeline(transaction=False)
                for key in portion:
                    pipe.hmget(key, "definition", "meta")
                for key, found in zip(portion, pipe.execute(raise_on_error=False), strict=True):
                    name = key.decode(errors="replace").removeprefix(self._prefix)
                    yield read_row(name, partial(self._row, name, found, static))
        except RedisError as error:
            raise SourceUnavailable(str(error)) from error

    def _row(self, name: str, found: Any, static: set[str]) -> Row:
        if isinstance(found, Exception):
            raise found
        if not found[0]:
            raise ValidationError("redbeat's schedule names it, and there is no such entry")
        entry, meta = (_object(text) for text in (found[0], found[1] or b"{}"))
        name = str(entry.get("name") or name)
        last, note = meta.get("last_run_at"), ""
        if last is not None and not isinstance(last, datetime):
            raise ValidationError({"last_run_at": f"{last!r} is no instant"})
        if name in static:
            note = "static: it stands in the settings of redbeat's project as well"
        state = {"last_run_at": last and from_utc(last.astimezone(UTC)), "runs": meta.get("total_run_count")}
        return of_entry(name, entry, *self._schedule(entry.get("schedule")), note, **state)

    def _schedule(self, given: Any) -> tuple[ScheduleValue, str]:
        kind = given.get("__type__") if isinstance(given, dict) else None
        if kind == "interval":
            every = timedelta(seconds=given["every"])
            return of_celery(schedules.schedule(every, relative=bool(given.get("relative"))))
        if kind == "crontab":
            return crontab({**given, "timezone": self._tz})
        if kind == "rrule":
            raise ValidationError({"schedule": f"an rrule ({_shown(given)}), for which there is no schedule here"})
        raise ValidationError({"schedule": f"{kind or given!r}: no kind of schedule that is known here"})


def without_password(url: str) -> str:
    """The URL as people may see it."""
    return str(maybe_sanitize_url(url))


def _object(text: bytes) -> Any:
    found = json.loads(text, object_hook=_instant)
    if not isinstance(found, dict):
        raise ValidationError(f"{text[:60]!r} is no entry of redbeat's")
    return found


def _instant(found: dict[str, Any]) -> Any:
    """An object of redbeat's JSON; its instants as datetimes, whose zone is a name or seconds east of Greenwich."""
    if found.get("__type__") != "datetime":
        return found
    parts = {name: value for name, value in found.items() if name not in ("__type__", "timezone")}
    east = found.get("timezone", "UTC")
    tz = timezone(timedelta(seconds=east)) if isinstance(east, int | float) else zone(east)
    return datetime(tzinfo=tz, **parts)


def _shown(rule: dict[str, object]) -> str:
    said = {name: value for name, value in rule.items() if name != "__type__" and value is not None}
    return ", ".join(f"{name}={value}" for name, value in said.items())
