"""The names, importable before Django is set up, and their asynchronous twins."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync

import onebeat
from onebeat import api, errors
from onebeat.models import Action, PeriodicTask
from tests.engine.kit import Bench, at, every, task


def test_every_verb_is_a_name_of_the_package() -> None:
    named = {name for name in onebeat.__all__ if name not in onebeat._ELSEWHERE and not hasattr(errors, name)}
    assert named == set(api.__all__) - {"linked"}
    assert [name for name in onebeat.__all__ if not hasattr(onebeat, name)] == []
    assert set(api.__all__) <= set(dir(onebeat))
    assert [name for name in api.__all__ if getattr(onebeat, name) is not getattr(api, name)] == []
    with pytest.raises(AttributeError, match="module 'onebeat' has no attribute 'twice'"):
        onebeat.twice  # noqa: B018


def test_the_package_needs_no_settings() -> None:
    code = "import onebeat, sys; assert not any(name.startswith('django') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_twins(bench: Bench) -> None:
    task(interval=every(100))

    async def story() -> list[object]:
        made = await onebeat.aonce("k", at=timedelta(seconds=5), task="t", by="ann")
        many = await onebeat.aonce_many([{"key": "k", "at": at(7), "task": "t"}], if_exists="reschedule")
        return [
            made.created,
            many[0].rescheduled,
            await onebeat.acancel("k"),
            await onebeat.apause("t", "why"),
            [one.skipped for one in await onebeat.aupcoming("t", 1)],
            (await onebeat.aexplain("t", at(100))).kind,
            await onebeat.aresume("t"),
            await onebeat.askip("t", at(100)),
            (await onebeat.arun_now("t")).run,
            await onebeat.adisable("t"),
            await onebeat.aenable("t"),
            (await onebeat.aduplicate("t", "u")).name,
        ]

    assert async_to_sync(story)() == [True, True, True, 1, ["paused"], "waiting", 1, True, 1, 1, 1, "u"]
    verbs = list(Action.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["reschedule", "cancel", "pause", "resume", "skip", "run_now", "disable", "enable", "duplicate"]
    assert PeriodicTask.objects.count() == 3
    assert onebeat.aonce.__name__ == "aonce"
