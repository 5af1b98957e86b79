"""Declarations are checked where they are made, by the one parser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from onebeat.declare import registry
from onebeat.declare.registry import recurring
from onebeat.declare.values import Cron, Every, Solar
from onebeat.errors import InvalidMessage


@pytest.fixture(autouse=True)
def _own_names() -> Iterator[None]:
    yield
    registry.forget(["t", "u"])


WRONG: list[tuple[str, Callable[[], Any]]] = [
    ("hour: '25'", lambda: Cron("0 25 * * *")),
    ("day_of_month", lambda: Cron("0 0 31 2 *")),
    ("cron: .* five fields", lambda: Cron("0 9 * *")),
    ("cron: '5'", lambda: Cron(5)),  # type: ignore[arg-type]
    ("timezone: 'Mars/Base'", lambda: Cron("0 9 * * *", tz="Mars/Base")),
    ("every", lambda: Every()),
    ("every", lambda: Every(minutes=-5)),
    ("minutes: '1.5'", lambda: Every(minutes=1.5)),  # type: ignore[arg-type]
    ("every", lambda: Every(microseconds=2**31)),
    ("every", lambda: Every(10)),  # type: ignore[arg-type]
    ("event: 'noon'", lambda: Solar("noon", 0, 0)),
    ("name: ", lambda: recurring("", Every(hours=1), "a.b")),
    ("schedule: ", lambda: recurring("t", "0 9 * * *", "a.b")),  # type: ignore[arg-type]
    ("task: ", lambda: recurring("t", Every(hours=1), 5)),  # type: ignore[arg-type]
    ("countdown: ", lambda: recurring("t", Every(hours=1), "a.b", countdown=3)),  # type: ignore[call-arg]
    (r"kwargs\[\"at\"\]", lambda: recurring("t", Every(hours=1), "a.b", kwargs={"at": datetime.now()})),  # noqa: DTZ005
    ("start_time: ", lambda: recurring("t", Every(hours=1), "a.b", start_time=datetime(2026, 1, 1))),  # noqa: DTZ001
    ("missed: ", lambda: recurring("t", Every(hours=1), "a.b", missed="never")),  # type: ignore[arg-type]
    ("grace: ", lambda: recurring("t", Every(hours=1), "a.b", grace=timedelta(seconds=1.5))),
    ("jitter: ", lambda: recurring("t", Every(hours=1), "a.b", jitter=5)),  # type: ignore[arg-type]
    ("enabled: ", lambda: recurring("t", Every(hours=1), "a.b", enabled="no")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("named", "make"), WRONG, ids=[named for named, _ in WRONG])
def test_what_is_wrong_is_named(named: str, make: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{named}"):
        make()
    assert "t" not in registry._declared


def test_an_interval_is_kept_as_written_where_it_can_be() -> None:
    def told(one: Every) -> tuple[int, str]:
        return one.every, one.period

    assert told(Every(minutes=90)) == (90, "minutes")
    assert told(Every(hours=1, minutes=30)) == (90, "minutes")
    assert told(Every(timedelta(days=14))) == (14, "days")
    assert told(Every(timedelta(seconds=1.5))) == (1_500_000, "microseconds")
    assert Every(minutes=5) == Every(timedelta(minutes=5)) and hash(Cron("0 9 * * 1")) == hash(Cron("0 9 * * 1"))


def test_a_name_is_declared_in_one_place() -> None:
    recurring("t", Every(hours=1), "a.b")
    with pytest.raises(ValueError, match=r"^name: 't' is declared in declare/test_values.py:\d+ and again in"):
        recurring("t", Every(hours=2), "a.b")
    for hours in (1, 2):  # a module that is imported again
        recurring("u", Every(hours=hours), "a.b")
    assert registry._declared["u"].schedule == Every(hours=2)


def test_declaring_needs_no_django() -> None:
    program = "import onebeat; onebeat.recurring('x', onebeat.Cron('0 9 * * *'), 'a.b', queue='q'); import sys; "
    program += "assert not any(name.startswith('django.db') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_signature_is_refused_where_it_is_declared() -> None:
    from celery import chain, group

    from tests.project.tasks import add

    for task in (group(add.s(1, 2), add.s(3, 4)), chain(add.s(1, 2), add.s(3)), add.s(1, 2), "celery.group"):
        with pytest.raises(InvalidMessage, match="signature"):
            registry.recurring("u", Every(hours=2), task)  # type: ignore[arg-type]
    assert "u" not in registry._declared
