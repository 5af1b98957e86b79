"""Rows that were taken over keep the meaning they had."""

from __future__ import annotations

from typing import Any

import pytest

from onebeat.core.recurrence import Cron, InvalidSchedule
from onebeat.core.recurrence.celery_dialect import as_celery_reads, read_taken_over
from tests.core.vectors import vectors

GRAMMAR = vectors("celery_grammar")


@pytest.mark.parametrize("vector", GRAMMAR, ids=[f"{v['field']} {v['expr']!r}" for v in GRAMMAR])
def test_each_vector_bug_for_bug(vector: dict[str, Any]) -> None:
    if "error" in vector:
        with pytest.raises(InvalidSchedule) as caught:
            as_celery_reads(vector["field"], vector["expr"])
        assert caught.value.field == vector["field"]
        return
    mask = as_celery_reads(vector["field"], vector["expr"]).mask
    assert [number for number in range(60) if mask >> number & 1] == vector["values"]


@pytest.mark.parametrize(
    ("fields", "verdict", "rule", "why"),
    [
        ("0|9|*|*|mon-fri", "kept", "0 9 * * 1-5", ""),
        ("05|*/2|1-7|jan|sat", "kept", "5 */2 1-7 1 6", ""),
        ("*/5-20|*|*|*|*", "expanded", "*/5 * * * *", "minute: '*/5-20' has been read as '*/5'"),
        ("1_0|*|*|*|*", "expanded", "10 * * * *", "minute: '1_0' has been read as '10'"),
        ("0|9|*|*|fri#2", "expanded", "0 9 * * 5", "day_of_week: 'fri#2' has been read as '5'"),
        ("jan|monday|*|*|mar", "expanded", "1 1 * * 3", "minute: 'jan' has been read as '1'; hour: "),
        ("0|9|*|*|7", "disabled", None, "day_of_week: '7'"),
        ("0|9|*|*|5-7", "disabled", None, "day_of_week: '7'"),
        ("0|9|L|*|*", "disabled", None, "day_of_month: 'L'"),
        ("|*|*|*|*", "disabled", None, "minute: '' is not accepted: it has an empty part"),
        ("1,|*|*|*|*", "disabled", None, "minute: '1,'"),
        ("1, 2-4|*|*|*|*", "disabled", None, "minute: ' 2-4'"),
        ("-0|*|*|*|*", "disabled", None, "minute: '-0'"),
        ("*/0|*|*|*|*", "disabled", None, "minute: '*/0'"),
        ("0|0|31|2|*", "disabled", None, "day_of_month: '31'"),
    ],
)
def test_a_verdict_for_each_row(fields: str, verdict: str, rule: str | None, why: str) -> None:
    minute, hour, day_of_month, month_of_year, day_of_week = fields.split("|")
    reading = read_taken_over(minute, hour, day_of_month, month_of_year, day_of_week, "europe/paris")
    assert reading.verdict == verdict
    assert reading.cron == (None if rule is None else Cron.parse(rule, "Europe/Paris"))
    assert reading.why.startswith(why)
    assert bool(reading.why) == (verdict != "kept")


def test_an_unknown_zone_disables() -> None:
    reading = read_taken_over("0", "9", "*", "*", "*", "Mars/Olympus")
    assert (reading.verdict, reading.cron) == ("disabled", None)
    assert reading.why.startswith("timezone: ")


def test_a_star_that_only_half_was_one_still_follows_the_clock() -> None:
    """`*/30 x` runs in both passes of a repeated hour, as `*/30` does."""
    assert read_taken_over("*/30 x", "1", "*", "*", "*").cron == Cron("*/30", "1")
