"""In UTC a crontab means exactly what it means to Celery."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from onebeat.core.recurrence import Cron, InvalidSchedule
from onebeat.core.recurrence.celery_dialect import as_celery_reads
from onebeat.core.recurrence.fields import KINDS, read
from tests.core.oracle import draw

schedules = pytest.importorskip("celery.schedules")

RULES = 20_000
SIZES = {"minute": (60, 0), "hour": (24, 0), "day_of_month": (31, 1), "month_of_year": (12, 1), "day_of_week": (7, 0)}


def celery_crontab(texts: tuple[str, ...], last: datetime):  # type: ignore[no-untyped-def]
    minute, hour, day_of_month, month_of_year, day_of_week = (text.replace(" ", "") for text in texts)
    return schedules.crontab(minute, hour, day_of_week, day_of_month, month_of_year, nowfun=lambda: last)


def test_random_rules_run_when_celery_runs_them() -> None:
    rng = random.Random(5)
    compared = 0
    for _ in range(RULES):
        last = datetime(rng.randint(1990, 2110), 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(366 * 86400))
        texts = draw(rng, last.replace(tzinfo=None) + timedelta(minutes=rng.randint(-3000, 100_000))).texts
        if "L" in "".join(texts) or "#" in texts[4]:
            continue  # ours alone
        try:
            cron = Cron(*texts)
        except InvalidSchedule as error:
            assert error.field in ("day_of_month", "day_of_week")
            continue
        start, delta, _now = celery_crontab(texts, last).remaining_delta(last, tz=UTC)
        assert cron.after(last) == start + delta, (texts, last)
        compared += 1
    assert compared > RULES / 2


ALPHABET = [
    *"0123456789",
    "*",
    "*/",
    "-",
    "/",
    ",",
    " ",
    "mon",
    "Sunday",
    "jan",
    "sept",
    "59",
    "31",
    "x",
    "_",
    "+",
    "#",
    "L",
]


def test_the_lenient_reading_is_celerys_bug_for_bug_and_the_strict_one_never_says_otherwise() -> None:
    rng = random.Random(6)
    read_by_celery = taken = 0
    for _ in range(60_000):
        field = rng.choice(sorted(KINDS))
        text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 6)))
        try:
            theirs = schedules.crontab_parser(*SIZES[field]).parse(text)
        except (ValueError, schedules.ParseException):
            theirs = None
        try:
            lenient = as_celery_reads(field, text)
        except InvalidSchedule:
            assert theirs is None, (field, text)
        else:
            assert {n for n in range(60) if lenient.mask >> n & 1} == theirs, (field, text)
            assert (lenient.text[0] == "*") == (text[0] == "*" or lenient.text == "*"), (field, text)
            read_by_celery += 1
        try:
            strict = read(field, text)
        except InvalidSchedule:
            continue
        taken += 1
        if theirs is not None and not strict.nth and not strict.last:
            assert {n for n in range(60) if strict.mask >> n & 1} == theirs, (field, text)
    assert read_by_celery > 3000
    assert taken > 3000


def test_canonical_text_means_the_same_to_celery() -> None:
    """The way back stays open: what is stored is read alike by the scheduler that came before."""
    rng = random.Random(8)
    for _ in range(3000):
        texts = draw(rng, datetime(2026, 1, 1) + timedelta(minutes=rng.randrange(500_000))).texts  # noqa: DTZ001
        for field, text in zip(KINDS, texts, strict=True):
            strict = read(field, text)
            if not strict.nth and not strict.last:
                theirs = schedules.crontab_parser(*SIZES[field]).parse(strict.text)
                assert {n for n in range(60) if strict.mask >> n & 1} == theirs, (field, text)
