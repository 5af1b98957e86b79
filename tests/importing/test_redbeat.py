"""`onebeat import redbeat` on a real Redis that the real celery-redbeat wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from celery import Celery

from onebeat.core import clock
from onebeat.models import PeriodicTask
from onebeat.models.instants import to_utc
from tests import services
from tests.engine.kit import START, Bench, at, due
from tests.importing.sources import imported, report
from tests.processes import run_python
from tests.scratch import Post

#: The Celery app of the project, in the zone in which redbeat's beat ran.
paris = Celery("paris", set_as_current=False)
paris.conf.timezone = "Europe/Paris"
paris.conf.redbeat_key_prefix = "mine:"

PARIS = ("-A", "tests.importing.test_redbeat:paris")

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED = {"rule": "rrule", "gone": "no such entry"}
NOTED = {"option": "options.countdown", "relative": "relative"}


def write(url: str, prefix: str, now: str) -> None:
    """Entries as programs make them, saved by celery-redbeat itself, and as its beat leaves them after a run."""
    from celery import Celery, schedules
    from redbeat import RedBeatScheduler, RedBeatSchedulerEntry
    from redbeat.schedules import rrule

    app = Celery("old", broker=url, set_as_current=False)
    app.conf.update(redbeat_redis_url=url, redbeat_key_prefix=prefix, timezone="Europe/Paris", redbeat_lock_key=None)
    app.conf.beat_schedule = {"static": {"task": "a.b", "schedule": schedules.crontab(minute=30)}}
    start = datetime.fromisoformat(now)

    def entry(name: str, schedule: Any, last: float = -10, runs: int = 0, **fields: Any) -> None:
        at = start + timedelta(seconds=last)
        one = RedBeatSchedulerEntry(name, "a.b", schedule, app=app, last_run_at=at, **fields).save()
        if runs:  # as a tick leaves it
            one.total_run_count = runs - 1
            one._next_instance(last_run_at=at)

    minute = schedules.schedule(60)
    entry("ran", minute, -30, 7, args=["x", start], kwargs={"k": 1}, options={"queue": "q", "expires": 30})
    entry("new", minute)
    entry("overdue", schedules.crontab(minute=30, app=app), -9000, 3)
    entry("daily", schedules.crontab(minute="0", hour="12", day_of_week="mon-fri"), -80000, 1)
    entry("off", minute, -600, 2, enabled=False)
    entry("read", schedules.crontab(minute="*/20-40"), 0, 1)
    entry("rule", rrule("MINUTELY", dtstart=start, count=3))
    entry("option", minute, options={"countdown": 3})
    entry("relative", schedules.schedule(60, relative=True))
    entry("gone", minute)
    RedBeatScheduler(app, lazy=False)
    redis.Redis.from_url(url).delete(f"{prefix}gone")


@pytest.fixture(scope="module")
def written() -> Iterator[str]:
    """The URL of a Redis with redbeat's entries under two prefixes, one of them broken by hand."""
    with Post.open(services.Broker("redis", services.url_of("redis"))) as post:
        run_python({}, write, post.url, "redbeat:", START.isoformat())
        with redis.Redis.from_url(post.url) as server:
            for name, text in {"text": b"no json", "list": b"[1]", "key": None}.items():
                if text is None:
                    server.set(f"mine:{name}", "not a hash")
                else:
                    server.hset(f"mine:{name}", "definition", text)
                server.zadd("mine::schedule", {f"mine:{name}": 1})
            server.hset("mine:zones", "definition", json.dumps(ZONES))
            server.hset("mine:zones", "meta", json.dumps(RAN))
            server.zadd("mine::schedule", {"mine:zones": 1})
            server.set("mine::lock", "1")
        yield post.url


def stamp(hour: int, minute: int, **zone: Any) -> dict[str, Any]:
    day = {"year": 2026, "month": 3, "day": 10, "hour": hour, "minute": minute, "second": 0, "microsecond": 0}
    return {"__type__": "datetime", **day, **zone}


#: Instants as they may be too: without a zone, which is UTC, or so many seconds east of it.
ZONES = {
    "name": "zones",
    "task": "a.b",
    "schedule": {"__type__": "interval", "every": 90, "relative": False},
    "options": {"expires": stamp(13, 0, timezone=7200.0)},
}
RAN = {"last_run_at": stamp(9, 59)}


@pytest.fixture(autouse=True)
def now() -> Iterator[None]:
    with clock.pin(START):
        yield


def content(url: str) -> dict[bytes, Any]:
    with redis.Redis.from_url(url) as server:
        return {key: server.dump(key) for key in server.scan_iter()}


def test_entries_are_carried_with_their_state(written: str) -> None:
    before = content(written)
    shown = report("redbeat", "--url", written, "--prefix", "redbeat:", *PARIS)
    assert not PeriodicTask.objects.exists()
    done = report("redbeat", "--url", written, "--prefix", "redbeat:", *PARIS, "--apply")
    assert content(written) == before
    assert (shown["code"], done["code"]) == (1, 1) and shown["rows"] == done["rows"] and done["warnings"] == []
    for name, words in REFUSED.items():
        row = done["rows"].pop(name)
        assert row["outcome"] == "refused" and words in row["why"], row
    for name, words in NOTED.items():
        row = done["rows"].pop(name)
        assert row["outcome"] == "new" and words in row["notes"][0], row
    assert {row["outcome"] for row in done["rows"].values()} == {"new"}
    assert "static" in done["rows"]["static"]["notes"][0] and "minute" in done["rows"]["read"]["notes"][0]

    found = {row.name: row for row in PeriodicTask.objects.all()}
    assert set(found) - {"celery.backend_cleanup", *NOTED} == {
        "ran",
        "new",
        "overdue",
        "daily",
        "off",
        "read",
        "static",
    }
    ran = found["ran"]
    assert ran.last_run_at and to_utc(ran.last_run_at) == at(-30) and ran.total_run_count == 7
    assert (ran.queue, ran.expire_seconds, json.loads(ran.kwargs)) == ("q", 30, {"k": 1})
    assert json.loads(ran.args) == ["x", {"__type__": "datetime", "__value__": START.isoformat()}]
    assert str(found["daily"].crontab.timezone) == "Europe/Paris"
    assert (found["off"].enabled, found["off"].total_run_count) == (False, 2)
    # redbeat writes when an entry was made as its last run.
    assert (found["new"].total_run_count, found["new"].enabled) == (0, True)

    bench = Bench()
    bench.tick()
    # Of the two times that nobody kept, the newest runs, late; nothing else fires for the past.
    assert bench.sent == [("overdue", -1800)]
    assert due(found["ran"]) == 30 and due(found["new"]) == 50
    assert due(found["daily"]) == 3600  # noon in Paris
    again = report("redbeat", "--url", written, "--prefix", "redbeat:", *PARIS, "--apply")
    assert again["counts"] == {"same": len(found), "refused": len(REFUSED)}


def test_what_has_run_there_since_is_brought_on_request(written: str) -> None:
    mine = ("redbeat", "--url", written, "--prefix", "mine:")
    assert report(*mine, "--apply")["rows"]["zones"]["outcome"] == "new"
    task = PeriodicTask.objects.get(name="zones")
    assert task.last_run_at and to_utc(task.last_run_at) == at(-60)
    assert task.expires and to_utc(task.expires) == at(3600)
    PeriodicTask.objects.update(last_run_at=None)
    kept = report(*mine, "--apply")
    assert kept["code"] == 1 and kept["rows"]["zones"] | {"notes": []} == {
        "name": "zones",
        "outcome": "kept",
        "why": "another last_run_at here",
        "notes": [],
    }
    assert report(*mine, "--apply", "--replace")["rows"]["zones"]["outcome"] == "replaced"
    task.refresh_from_db()
    assert task.last_run_at and to_utc(task.last_run_at) == at(-60)
    # What has run here since stays.
    PeriodicTask.objects.update(last_run_at=task.last_run_at.replace(minute=59, second=30), total_run_count=3)
    assert report(*mine, "--apply", "--replace")["rows"]["zones"]["outcome"] == "same"


def test_broken_keys_are_named_and_a_beat_at_work_is_seen(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The URL and the prefix may be those of redbeat's settings.
    monkeypatch.setitem(paris.conf, "redbeat_redis_url", written)
    done = report("redbeat", *PARIS)
    assert {name for name, row in done["rows"].items() if row["outcome"] == "refused"} == {"text", "list", "key"}
    assert "WRONGTYPE" in done["rows"]["key"]["why"]
    (warning,) = done["warnings"]
    assert (
        "stop its beat" in warning and "stop its beat" in imported("redbeat", "--url", written, "--prefix", "mine:")[1]
    )
    assert imported("redbeat", "--url", written, "--prefix", "nobody:") == (
        0,
        f"From redbeat at {written}\nno tasks there.\n",
    )
