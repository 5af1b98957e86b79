"""Enable, disable and duplicate: each leaves an action, and losing a race is no error."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction

import onebeat
from onebeat.errors import InvalidArgument, KeyTaken, UnknownTask
from onebeat.models import Action, PeriodicTask, TaskOptions
from tests.engine.kit import Bench, every, task
from tests.project.tasks import add


def actions() -> list[tuple[str, str, str, str]]:
    return list(Action.objects.order_by("pk").values_list("verb", "task_name", "by", "why"))


def test_each_change_is_counted_recorded_and_made_once(bench: Bench) -> None:
    first, second = task("a", interval=every(10)), task("b", interval=every(10))
    TaskOptions.objects.create(task=first, tags="mail")
    TaskOptions.objects.create(task=second, tags="mail")
    assert onebeat.disable("a", why="broken", by="ann") == 1
    assert onebeat.disable(onebeat.Tag("mail")) == 1
    assert onebeat.disable(first) == 0
    assert onebeat.enable(onebeat.Tag("mail"), by="bob") == 2
    assert actions() == [
        ("disable", "a", "ann", "broken"),
        ("disable", "b", "", ""),
        ("enable", "a", "bob", ""),
        ("enable", "b", "bob", ""),
    ]
    assert PeriodicTask.objects.filter(enabled=True).count() == 2
    with pytest.raises(UnknownTask):
        onebeat.enable("c")
    with pytest.raises(InvalidArgument, match="which: a task's name or object, or a Tag is needed"):
        onebeat.disable(onebeat.ALL)  # type: ignore[arg-type]


def test_a_copy_is_disabled_not_paused_and_has_no_past(bench: Bench) -> None:
    source = task("a", interval=every(10), total_run_count=5)
    TaskOptions.objects.create(task=source, tags="mail", jitter_seconds=3, paused=True, paused_why="w", link="x.y:1")
    copy = onebeat.duplicate("a", "b", by="ann")
    assert (copy.name, copy.enabled, copy.total_run_count, copy.interval) == ("b", False, 0, source.interval)
    options = TaskOptions.objects.get(task=copy)
    assert (options.tags, options.jitter_seconds, options.paused, options.link) == ("mail", 3, False, "")
    assert actions() == [("duplicate", "b", "ann", "")]
    with transaction.atomic():
        with pytest.raises(KeyTaken):
            onebeat.duplicate(source, "b")
        assert PeriodicTask.objects.count() == 2  # the caller's transaction goes on
    with pytest.raises(UnknownTask):
        onebeat.duplicate("c", "d")
    with pytest.raises(InvalidArgument, match="name: a text of 1 to 200 characters is needed"):
        onebeat.duplicate("a", "x" * 201)


def test_a_rollback_leaves_nothing(bench: Bench) -> None:
    task("a", interval=every(10))
    with transaction.atomic():
        onebeat.disable("a")
        onebeat.duplicate("a", "b")
        transaction.set_rollback(True)
    assert actions() == []
    assert list(PeriodicTask.objects.values_list("name", "enabled")) == [("a", True)]


def test_a_name_that_is_too_long_is_named_and_a_task_object_stands_for_its_name(bench: Bench) -> None:
    with pytest.raises(ValidationError, match="name has 201 characters; at most 200 are possible"):
        task("x" * 201, interval=every(10))
    made = PeriodicTask.objects.create(name="f", task=add, interval=every(10))
    assert PeriodicTask.objects.get(pk=made.pk).task == "tests.project.tasks.add"
