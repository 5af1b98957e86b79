"""`manage.py onebeat sync`: the difference, the runs, and an exit code of its own for what cannot work."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from onebeat.checks import check_declarations
from onebeat.declare import registry
from onebeat.declare.values import Cron, Every
from onebeat.models import CodeVersion, Declared, PeriodicTask
from tests.declare.conftest import Code
from tests.engine.kit import at
from tests.project.celery import app

pytestmark = pytest.mark.usefixtures("still")


@pytest.fixture(autouse=True)
def _tasks() -> Any:
    @app.task(name="declared.takes", bind=True)
    def takes(self: Any, number: int, *, full: bool = False) -> None: ...

    yield
    app.tasks.unregister("declared.takes")


def one(name: str, schedule: Any, **kwargs: Any) -> Any:
    return (name, schedule, kwargs.pop("task", "declared.takes")), {"args": [1], **kwargs}


def run(*args: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    try:
        call_command("onebeat", "sync", *args, stdout=out, stderr=errors)
    except CommandError as error:
        return error.returncode, out.getvalue(), errors.getvalue()
    return 0, out.getvalue(), errors.getvalue()


def test_a_dry_run_shows_the_difference_and_the_runs_and_writes_nothing(code: Code) -> None:
    code(one("moves", Cron("0 12 * * *")), one("goes", Cron("0 13 * * *")), one("mine", Every(hours=1), queue="q"))
    PeriodicTask.objects.filter(name="mine").update(queue="other")
    new = one("moves", Cron("0 14 * * *")), one("comes", Cron("0 15 * * *")), one("mine", Every(hours=1), queue="q")
    code(*new, apply=False)
    tables = list(PeriodicTask.objects.values()), list(Declared.objects.values()), list(CodeVersion.objects.values())
    status, text, errors = run("--dry-run")
    assert (status, errors) == (0, "")
    lines = text.splitlines()
    assert [line.split("  (")[0] for line in lines if not line.startswith(" ")] == [
        "~ moves: changes",
        "+ comes: new",
        "- goes: is no longer declared; it is disabled",
        "3 of 4 declared tasks would change",
    ]
    assert (
        "    runs move: 2026-03-10T12:00:00+00:00, 2026-03-11T12:00:00+00:00, 2026-03-12T12:00:00+00:00 ... -> "
        "2026-03-10T14:00:00+00:00, 2026-03-11T14:00:00+00:00, 2026-03-12T14:00:00+00:00 ..." in lines
    )
    assert any(line.startswith("    runs that appear: 2026-03-10T15:00:00+00:00") for line in lines)
    assert any(line.startswith("    runs that vanish: 2026-03-10T13:00:00+00:00") for line in lines)
    assert '    queue: set by hand, stays "other"; code says "q"' in lines
    assert tables == (
        list(PeriodicTask.objects.values()),
        list(Declared.objects.values()),
        list(CodeVersion.objects.values()),
    )
    assert run()[0] == 0
    assert PeriodicTask.objects.filter(enabled=True).count() == 3
    assert run("--dry-run")[1].splitlines()[-1] == "0 of 3 declared tasks would change"


DANGERS: list[tuple[str, Any]] = [
    ("task: the Celery app 'tests.project' has no task 'declared.take'; did you mean 'declared.takes'?",
     one("t", Every(hours=1), task="declared.take")),
    ("args, kwargs: declared.takes cannot take them", one("t", Every(hours=1), args=[])),
    ("args, kwargs: declared.takes cannot take them", one("t", Every(hours=1), kwargs={"ful": True})),
    ("it never runs", one("t", Every(hours=1), expires=at(-60))),
    ("it never runs", one("t", Cron("0 0 29 2 *"), start_time=at(0), expires=at(86400))),
]  # fmt: skip


@pytest.mark.parametrize(("why", "given"), DANGERS, ids=[str(number) for number in range(len(DANGERS))])
def test_danger_has_an_exit_code_of_its_own(code: Code, why: str, given: Any) -> None:
    code(given, one("fine", Every(hours=1), kwargs={"full": True}), apply=False)
    status, text, errors = run("--dry-run")
    assert status == 3 and errors.startswith(f"! t: {why}") and errors.count("\n") == 1
    assert not PeriodicTask.objects.exists()
    found = json.loads(run("--dry-run", "--json")[1])
    assert found["dry_run"] and [each["task"] for each in found["dangers"]] == ["t"]
    assert {each["task"]: each["what"] for each in found["changes"]} == {"t": "new", "fine": "new"}
    assert text.endswith("2 of 2 declared tasks would change\n")


def test_what_is_in_danger_with_a_person_s_change_is_seen_too(code: Code) -> None:
    code(one("t", Every(hours=1)))
    assert run("--dry-run")[0] == 0
    PeriodicTask.objects.update(args="[]")
    assert run("--dry-run")[0] == 3
    PeriodicTask.objects.update(enabled=False)  # and then nothing is at stake
    assert run("--dry-run")[0] == 0


def test_an_entry_that_is_refused_is_danger_and_the_others_are_written(code: Code) -> None:
    bad = {"task": "declared.takes", "schedule": timedelta(hours=1), "args": [1], "nonsense": 3}
    code(one("t", Every(hours=1)), settings={"bad": bad}, apply=False)
    status, _, errors = run()
    assert status == 3 and errors.startswith("! bad: nonsense: ")
    assert PeriodicTask.objects.get().name == "t"


def test_a_module_that_fails_is_named(code: Code, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> Any:
        return Cron("0 25 * * *")

    monkeypatch.setattr(registry, "declared", fails)
    (found,) = check_declarations()
    assert found.id == "onebeat.E004" and "hour: '25'" in found.msg
    with pytest.raises(CommandError, match=r"cannot be read: .*hour") as caught:
        call_command("onebeat", "sync", "--dry-run")
    assert caught.value.returncode == 3
