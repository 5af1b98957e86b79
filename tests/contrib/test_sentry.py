"""Sentry Crons with the real SDK, and a stand-in for its server that keeps the envelopes it gets."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from onebeat.core.recurrence import Cron
from onebeat.store.attempts import Outcome
from tests.celery.desk import LIMIT, desk
from tests.processes import eventually, run_python
from tests.scratch import Templates

pytest.importorskip("sentry_sdk")


class StandIn(ThreadingHTTPServer):
    """Keeps every check-in."""

    daemon_threads = True

    def __init__(self) -> None:
        self.check_ins: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def dsn(self) -> str:
        return f"http://key@127.0.0.1:{self.server_address[1]}/1"

    def of(self, slug: str) -> list[tuple[str, str]]:
        return [(one["status"], one["check_in_id"]) for one in self.check_ins if one["monitor_slug"] == slug]

    def states(self, slug: str) -> list[str]:
        """Sorted, since a worker may be quicker than the scheduler's report."""
        return sorted(status for status, _ in self.of(slug))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        for about, item in zip(lines[1::2], lines[2::2], strict=False):
            if about.get("type") == "check_in":
                self.server.check_ins.append(item)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[StandIn]:
    made = StandIn()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def add_tasks() -> None:
    from onebeat.models import PeriodicTask, TaskOptions
    from onebeat.models.instants import from_utc
    from tests.engine.kit import every

    due = from_utc(datetime.now(UTC) - timedelta(seconds=3599))
    for name, task in (
        ("good", "plain"),
        ("bad", "boom"),
        ("again", "retries"),
        ("nobody", "unknown_here"),
        ("private one", "plain"),
        ("paused", "plain"),
    ):
        made = PeriodicTask.objects.create(
            name=name, task=f"tests.celery.tasks.{task}", args=[name], interval=every(3600), last_run_at=due
        )
        if name == "paused":
            TaskOptions.objects.create(task=made, paused=True)
        if name == "good":
            extra = {"monitor": {"owner": "team:shop", "failure_issue_threshold": 3}, "time_limit": 90}
            TaskOptions.objects.create(task=made, extra=extra, jitter_seconds=0, grace_seconds=600)


BEAT = ("-m", "celery", "-A", "tests.project.celery", "beat", "-S", "onebeat")
RUN = ("-m", "django", "onebeat", "run", "-A", "tests.project.celery")


@pytest.mark.broker
@pytest.mark.timeout(200)
@pytest.mark.parametrize("command", [BEAT, RUN], ids=["beat", "run"])
def test_every_run_is_opened_and_closed(
    templates: Templates, tmp_path: Path, server: StandIn, spawn: Callable[..., Any], command: tuple[str, ...]
) -> None:
    with desk(templates, tmp_path, "redis", "postgresql", modules=["tests.celery.tasks"]) as at:
        sentry = {"DJANGO_SETTINGS_MODULE": "tests.contrib.sentry_settings", "SENTRY_STAND_IN": server.dsn}
        run_python(at.database.env, add_tasks)
        own = {"ONEBEAT_TEST_CELERY": json.dumps(at.settings)}
        with at.worker("prefork", more=sentry):
            spawn({**at.database.env, **at.post.env, **own, **sentry}, *command)
            wanted = {
                "good": ["in_progress", "ok"],
                "bad": ["error", "in_progress"],
                "again": ["in_progress", "ok"],
                "nobody": ["error", "in_progress"],
                "paused": ["ok"],
            }
            eventually(lambda: {name: server.states(name) for name in wanted} == wanted, LIMIT, "the check-ins")
    assert not server.of("private one")
    for name in wanted:
        assert len({key for _, key in server.of(name)}) == 1
    good = next(one for one in server.check_ins if one["monitor_slug"] == "good")
    assert good["monitor_config"] == {
        "schedule": {"type": "interval", "value": 1, "unit": "hour"},
        "timezone": "UTC",
        "checkin_margin": 10,
        "max_runtime": 2,
        "failure_issue_threshold": 3,
        "owner": "team:shop",
    }


def closed(outcome: Outcome, monkeypatch: pytest.MonkeyPatch, headers: dict[str, Any]) -> list[dict[str, Any]]:
    from onebeat.contrib.sentry import closing

    put: list[dict[str, Any]] = []

    class Kept:
        def put(self, check_in: dict[str, Any], trace: dict[str, Any]) -> None:
            put.append({**check_in, "trace": trace})

    monkeypatch.setattr(closing, "outbox", Kept)
    closing.close(headers, outcome)
    return put


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("nested", [False, True])
def test_each_outcome_closes_it_once(outcome: Outcome, nested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"sentry-monitor-slug": "one", "sentry-monitor-check-in-id": "ab", "sentry-trace": "1-2"}
    put = closed(outcome, monkeypatch, {"headers": own} if nested else own)
    if outcome in ("retry", "requeued"):
        assert not put
        return
    wanted = "ok" if outcome in ("success", "ignored") else "error"
    trace = {"sentry-trace": "1-2"}
    assert put == [{"monitor_slug": "one", "check_in_id": "ab", "status": wanted, "trace": trace}]
    assert not closed(outcome, monkeypatch, {"onebeat_task": 1})


def outbox_of_many(dsn: str, count: int) -> None:
    import sentry_sdk

    from onebeat.contrib.sentry.outbox import outbox

    sentry_sdk.init(dsn=dsn)
    for number in range(count):
        for status in ("in_progress", "ok"):
            outbox().put({"monitor_slug": "many", "check_in_id": f"{number:032x}", "status": status}, {})
    outbox().flush(60)


def test_many_at_once_leave_no_monitor_open(server: StandIn) -> None:
    """More than the SDK's queue holds."""
    run_python({"DJANGO_SETTINGS_MODULE": "tests.project.settings"}, outbox_of_many, server.dsn, 500)
    assert len(server.check_ins) == 1000
    assert len({key for status, key in server.of("many") if status == "ok"}) == 500


@pytest.mark.parametrize(
    "texts",
    [
        ("0", "9", "*", "*", "mon-fri"),
        ("*/7", "22-2", "*", "*", "*"),
        ("0", "0", "L", "*", "*"),
        ("30", "8", "*", "*", "mon#2"),
        ("30", "8", "*", "*", "fri#L"),
        ("0", "12", "15", "january,jul", "*"),
        ("5", "4", "*/2", "*", "sunday"),
        ("5", "4", "*", "*", "fri-mon"),
    ],
)
def test_its_server_reads_the_same_times(texts: tuple[str, ...]) -> None:
    """The server asks cronsim."""
    from onebeat.contrib.sentry.monitors import of_rule

    rule = Cron(*texts, "Europe/Berlin")
    given = of_rule(rule)
    assert isinstance(given, dict)
    assert given["timezone"] == "Europe/Berlin"
    at = datetime(2026, 1, 1, tzinfo=UTC)
    theirs = CronSim(given["schedule"]["value"], at.astimezone(ZoneInfo("Europe/Berlin")))
    for _ in range(40):
        at = rule.after(at)  # type: ignore[assignment]
        assert next(theirs) == at


@pytest.mark.parametrize(
    "texts", [("0", "9", "13", "*", "fri"), ("0", "9", "1-7", "*", "mon")], ids=["friday 13th", "first monday"]
)
def test_a_rule_that_its_server_reads_otherwise_is_left_out(texts: tuple[str, ...]) -> None:
    from onebeat.contrib.sentry.monitors import of_rule

    assert isinstance(of_rule(Cron(*texts, "UTC")), str)
