"""Each of Celery's settings about periodic tasks is honoured, or named by `manage.py check` as without effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, current_app
from celery.app.defaults import DEFAULTS

from onebeat import checks
from onebeat.dispatch.celery.beat_settings import ELSEWHERE, HONOURED, WITHOUT_EFFECT
from onebeat.models import Occurrence
from tests.engine.kit import Bench, cron, every, options, task

PAGE = Path(__file__).parents[3] / "docs" / "switch.md"


@pytest.fixture
def conf() -> Iterator[Any]:
    """The settings of the process's Celery app, put back afterwards."""
    app: Any = current_app._get_current_object()  # type: ignore[attr-defined]
    changed = ("beat_cron_starting_deadline", "beat_sync_every", "beat_schedule_filename")
    before = {name: app.conf[name] for name in changed}
    yield app.conf
    app.conf.update(before)


def test_every_setting_of_beat_is_known_and_on_the_page() -> None:
    known = {*HONOURED, *WITHOUT_EFFECT, *ELSEWHERE}
    assert {name for name in DEFAULTS if name.startswith("beat_")} <= known
    assert not set(HONOURED) & set(WITHOUT_EFFECT)
    page = PAGE.read_text()
    assert [name for name in known if f"| `{name}` |" not in page] == []


def test_check_names_what_somebody_has_set_and_has_no_effect(conf: Any) -> None:
    assert isinstance(current_app._get_current_object(), Celery)  # type: ignore[attr-defined]
    before = {message.msg for message in checks.check_celery_settings()}
    conf.update(beat_sync_every=7, beat_schedule_filename="elsewhere")
    found = [message for message in checks.check_celery_settings() if message.msg not in before]
    assert [message.id for message in found] == ["onebeat.W004"] * 2
    assert {word for message in found for word in message.msg.split() if word.startswith("beat_")} == {
        "beat_sync_every",
        "beat_schedule_filename",
    }


def test_the_starting_deadline_is_the_grace_of_crontab_tasks(bench: Bench, conf: Any) -> None:
    conf.beat_cron_starting_deadline = 1800
    task("crontab", crontab=cron("0", "11"))
    task("interval", interval=every(3600))
    options(task("own grace", crontab=cron("0", "11")), grace_seconds=100_000)
    bench.tick()
    bench.advance(4 * 3600)  # three hours late
    assert {name for name, _ in bench.sent} == {"interval", "own grace"}
    missed = Occurrence.objects.get(task_name="crontab", state="skipped")
    assert (missed.reason, "1800 s" in missed.detail) == ("missed", True)


@pytest.mark.parametrize("wrong", ["soon", -1, True, 1e30])
def test_a_deadline_that_is_no_number_of_seconds_is_named_by_check_and_stops_no_task(
    bench: Bench, conf: Any, wrong: object
) -> None:
    conf.beat_cron_starting_deadline = wrong
    assert [message.id for message in checks.check_celery_settings() if "deadline" in message.msg] == ["onebeat.E006"]
    task("crontab", crontab=cron("0", "11"))
    bench.tick()
    bench.advance(4 * 3600)
    assert [name for name, _ in bench.sent] == ["crontab"]
