"""The commands of docs/import.md run as they stand there, but for the addresses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from onebeat.importing.report import _WOULD
from onebeat.models import PeriodicTask
from tests import services
from tests.importing.sources import ELSEWHERE, elsewhere, imported
from tests.processes import ROOT
from tests.scratch import Post
from tests.takeover.old import LAST

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (ROOT / "docs/import.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()]


def test_the_commands_run_and_only_those_with_apply_write(declared: dict[str, Any]) -> None:
    declared["from the settings"] = {"task": "a.b", "schedule": 60}
    written = []
    with elsewhere(LAST) as old, Post.open(services.Broker("redis", services.url_of("redis"))) as post:
        old.intervals((1, 5, "minutes"))
        old.task("from the database", interval_id=1)
        for command in COMMANDS:
            start, words = command.split("onebeat import ")
            assert start == "python manage.py "
            given = [{"redis://localhost:6379/0": post.url, "old": ELSEWHERE}.get(word, word) for word in words.split()]
            before = PeriodicTask.objects.count()
            assert imported(*given)[0] == 0, command
            written += [command] if PeriodicTask.objects.count() > before else []
    assert [command for command in COMMANDS if "--apply" in command and "redbeat" not in command] == written
    assert set(PeriodicTask.objects.values_list("name", flat=True)) == {"from the settings", "from the database"}


def test_the_page_names_every_outcome() -> None:
    assert not [word for word in _WOULD if f"`{word}`" not in PAGE]
