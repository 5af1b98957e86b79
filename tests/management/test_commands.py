"""What the subcommands of `manage.py onebeat` share."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from tests.engine.kit import Bench, task

PRINTING = (["status"], ["health"], ["next"], ["prune"], ["adopt"], ["check"], ["explain", "t", "--at", "2026-03-10"])


def told(*words: str) -> str:
    out = io.StringIO()
    call_command("onebeat", *words, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("words", PRINTING, ids=lambda words: words[0])
def test_verbosity_stands_behind_the_subcommand(bench: Bench, words: list[str]) -> None:
    task("t")
    bench.tick()
    assert told(*words)
    assert told(*words, "-v", "0") == ""
    assert told(*words, "--verbosity", "0", "--json").startswith("{")
    with pytest.raises(CommandError, match="invalid choice"):
        told(*words, "-v", "9")
