"""What the subcommands of `manage.py onebeat` share."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from onebeat.conf import current
from onebeat.models import Beat
from onebeat.store import leases
from tests.engine.kit import Bench, at, task

ROOT = Path(__file__).resolve().parents[2]
PRINTING = (
    *(["status"], ["status", "--storage"], ["health"], ["next"], ["prune"], ["adopt"], ["check"]),
    ["explain", "t", "--at", "2026-03-10"],
)


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


def test_storage_names_each_table_and_what_goes_next(bench: Bench) -> None:
    task("t")
    bench.work(61)
    (beat,) = Beat.objects.all()
    leases.take("default", leases.HOUSEKEEPING, beat.pk, timedelta(seconds=10))
    found = json.loads(told("status", "--storage", "--json"))
    tables = {one._meta.db_table for one in apps.get_app_config("django_celery_beat").get_models()}
    assert found["tables"].keys() == {name for name in tables if name.startswith("onebeat_")}
    ledger = found["tables"]["onebeat_occurrence"]
    assert ledger["oldest"] == at(60).isoformat()
    if connection.vendor == "sqlite":
        assert (ledger["rows"], ledger["bytes"], ledger["dead_rows"]) == (1, None, None)
    else:
        assert ledger["bytes"] > 0
    plan = found["retention"]
    week = timedelta(days=current().keep_days)
    assert datetime.fromisoformat(plan["sent_before"]) == datetime.fromisoformat(found["now"]) - week
    assert plan["after"] == 0 and plan["holder"] == str(beat)
    text = told("status", "--storage")
    assert "onebeat_occurrence" in text and "sent: deleted when decided before" in text


@pytest.mark.parametrize("name", apps.get_app_config("django_celery_beat").models)
def test_the_page_says_what_bounds_each_table(name: str) -> None:
    table = apps.get_model("django_celery_beat", name)._meta.db_table
    if table.startswith("onebeat_"):
        bounds = (ROOT / "docs" / "operations.md").read_text().split("what bounds it")[1].split("\n## ")[0]
        assert f"`{table}`" in bounds
