"""A value has one spelling: however it is written, it is stored once and found, on every database."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.processes import run_python
from tests.scratch import Scratch


def spellings() -> dict[str, Any]:
    """For each value: what is stored, and how many of its spellings do not find the one row it made."""
    from datetime import UTC, datetime, timedelta, timezone
    from decimal import Decimal

    from onebeat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, SolarSchedule

    instant = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)
    paris = ZoneInfo("Europe/Paris")
    cases: list[tuple[Any, str, list[Any]]] = [
        (CrontabSchedule, "minute", [[30, 0], "0, 30", {0, 30}, "0,30"]),
        (CrontabSchedule, "hour", [7, "7", [7]]),
        (CrontabSchedule, "timezone", ["europe/paris", "Europe/Paris", paris]),
        (IntervalSchedule, "period", [" Days", "days", "DAYS "]),
        (SolarSchedule, "latitude", [Decimal("48.85660012"), "48.8566", 48.8566]),
        (SolarSchedule, "longitude", [Decimal("-0.00000012"), 0, "0"]),
        (
            ClockedSchedule,
            "clocked_time",
            [instant.astimezone(paris), instant, instant.astimezone(timezone(timedelta(hours=5, minutes=30)))],
        ),
    ]
    rest = {
        IntervalSchedule: {"every": 1, "period": "hours"},
        SolarSchedule: {"event": "Sunset", "latitude": 1, "longitude": 1},
    }
    found = {}
    for model, field, values in cases:
        row = model.objects.create(**{**rest.get(model, {}), field: values[0]})
        lost = [value for value in values if list(model.objects.filter(**{field: value})) != [row]]
        lost += [value for value in values if list(model.objects.filter(**{f"{field}__in": [value]})) != [row]]
        for value in values:
            model.objects.filter(pk=row.pk).update(**{field: value})
            lost += [value] * (not model.objects.filter(pk=row.pk, **{field: values[0]}).exists())
        on_the_instance = getattr(row, field)
        row.refresh_from_db()
        found[field] = [str(on_the_instance), str(getattr(row, field)), [repr(value) for value in lost]]
        row.delete()
    return found


@pytest.mark.parametrize("aware", ["1", "0"])
def test_every_spelling_finds_the_row(database: Scratch, aware: str) -> None:
    env = {**database.env, "ONEBEAT_TEST_USE_TZ": aware, "ONEBEAT_TEST_TIME_ZONE": "America/Chicago"}
    found = run_python(env, spellings)
    assert {field: lost for field, (_, _, lost) in found.items() if lost} == {}
    assert found.pop("clocked_time")[1] == (
        "2026-07-01 12:00:00.123456+00:00" if aware == "1" else "2026-07-01 07:00:00.123456"
    )
    assert {field: (before, after) for field, (before, after, _) in found.items()} == {
        "minute": ("0,30", "0,30"),
        "hour": ("7", "7"),
        "timezone": ("Europe/Paris", "Europe/Paris"),
        "period": ("days", "days"),
        "latitude": ("48.856600", "48.856600"),
        "longitude": ("0.000000", "0.000000"),
    }


def parts() -> list[int]:
    from onebeat.models import CrontabSchedule

    CrontabSchedule.objects.create(minute="0,30", timezone="Europe/Paris")
    looked_for = [
        {"minute__startswith": "0,"},
        {"minute__contains": "3"},
        {"timezone__contains": "Paris"},
        {"timezone__iexact": "europe/PARIS"},
        {"minute__contains": "*"},
    ]
    return [CrontabSchedule.objects.filter(**each).count() for each in looked_for]


def test_a_part_of_a_text_is_looked_for_as_it_is(database: Scratch) -> None:
    assert run_python(database.env, parts) == [1, 1, 1, 1, 0]


def old_row() -> list[Any]:
    """Rows from before, past our checks: what is read, and which of two things can still be written to it."""
    from django.core.exceptions import ValidationError
    from django.db import connection
    from django.forms import modelform_factory

    from onebeat.models import CrontabSchedule

    good, bad = CrontabSchedule.objects.create(minute=1), CrontabSchedule.objects.create(minute=2)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {CrontabSchedule._meta.db_table} SET timezone = 'Nope/X', minute = '*/5-20' WHERE id = %s",
            [bad.pk],
        )
    read = sorted(str(row.timezone) for row in CrontabSchedule.objects.all())
    listed = sorted(map(str, CrontabSchedule.objects.values_list("timezone", flat=True)))
    bad.refresh_from_db()
    texts = [read, listed, bad.minute]
    refused = []
    for name in ("minute", "timezone"):
        try:
            field = CrontabSchedule._meta.get_field(name)
            field.clean(getattr(bad, name), bad)  # type: ignore[union-attr]
        except ValidationError as error:
            refused.append(error.messages)
    form = modelform_factory(CrontabSchedule, fields=["timezone"])
    return [
        *texts,
        [len(messages) for messages in refused],
        '<option value="Europe/Paris" selected>' in str(form(instance=good)),
        "selected" in str(form(instance=bad)["timezone"].as_widget()),
    ]


def test_a_row_that_breaks_a_rule_can_be_read_and_is_refused_when_checked(database: Scratch) -> None:
    env = {**database.env, "ONEBEAT_TEST_TIME_ZONE": "Europe/Paris"}
    texts = ["Europe/Paris", "Nope/X"]
    assert run_python(env, old_row) == [texts, texts, "*/5-20", [1, 1], True, False]


@pytest.mark.parametrize(
    ("setting", "default"),
    [
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("asia/tokyo", "Asia/Tokyo"),
        ("Nope/X", "UTC"),
        (None, "UTC"),
        (ZoneInfo("Asia/Tokyo"), "UTC"),
    ],
)
def test_a_crontab_without_a_zone_gets_the_one_it_got_before(
    settings: Any, setting: str | ZoneInfo | None, default: str
) -> None:
    from onebeat.models import CrontabSchedule

    settings.TIME_ZONE = "Europe/Paris"
    settings.CELERY_TIMEZONE = setting
    assert CrontabSchedule().timezone == ZoneInfo(default)
