"""Rules in words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from onebeat.core.describe import describe, note, raw
from onebeat.core.recurrence import Clocked, Cron, Interval, Recurrence, Solar
from tests.core.recurrence.test_cron_laws import crons
from tests.core.walking import at


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 * * * *", "every hour"),
        ("7 * * * *", "every hour at minute 7"),
        ("0 */6 * * *", "every 6 hours"),
        ("30 */6 * * *", "every 6 hours at minute 30"),
        ("0 9 * * 1-5", "at 09:00, on Monday to Friday"),
        ("0,30 9,17 * * *", "at 09:00, 09:30, 17:00 and 17:30"),
        ("0 9 * * 1,3,5", "at 09:00, on Monday, Wednesday and Friday"),
        ("0 9 * * fri-mon", "at 09:00, on Friday to Monday"),
        ("0 6 L * *", "at 06:00, on the last day of the month"),
        ("0 6 1,15 1,7 *", "at 06:00, on day 1 and 15 of the month, in January and July"),
        ("0 6 1 */6 *", "at 06:00, on day 1 of the month, in January and July"),
        ("0 6 * * fri#L", "at 06:00, on the last Friday of the month"),
        ("0 6 * * mon#2", "at 06:00, on the second Monday of the month"),
        ("0 4 13 * 5", "at 04:00, on day 13 of the month, but only when it is also Friday"),
        (
            "0 6 28 * mon#4",
            "at 06:00, on day 28 of the month, but only when it is also the fourth Monday of the month",
        ),
        ("0 22 1-7 * 6", "at 22:00, on day 1 to 7 of the month, but only when it is also Saturday"),
    ],
)
def test_common_shapes(rule: str, words: str) -> None:
    assert describe(Cron.parse(rule, "Europe/Paris")) == f"{words} (Europe/Paris)"


@pytest.mark.parametrize("rule", ["*/7 * * * *", "0-30/3 9 * * *", "0 */5 * * *", "0 6 */2 * *", "0 6 15,L * *"])
def test_other_shapes_are_shown_as_they_are_written(rule: str) -> None:
    assert describe(Cron.parse(rule)) == f"{rule} (UTC)"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Interval.of(1, "hours", at("2026-01-01")), "every hour"),
        (Interval.of(90, "minutes", at("2026-01-01")), "every 90 minutes"),
        (Interval(timedelta(seconds=1.5), at("2026-01-01")), "every 1.5 seconds"),
        (Interval(timedelta(microseconds=2500), at("2026-01-01")), "every 2500 microseconds"),
        (Interval(timedelta(days=3), at("2026-01-01")), "every 3 days"),
        (Clocked(at("2026-01-01T10:00+02:00")), "once at 2026-01-01 08:00:00 UTC"),
    ],
)
def test_other_kinds(rule: Recurrence, words: str) -> None:
    assert describe(rule) == words


def test_the_sun() -> None:
    pytest.importorskip("ephem")
    assert describe(Solar("dawn_civil", 48.85, 2.35)) == "at civil dawn at 48.85, 2.35"


def test_in_another_language() -> None:
    german = {
        "at %(times)s": "um %(times)s", "on %(weekdays)s": "am %(weekdays)s", "Monday": "Montag", "Friday": "Freitag",
        "%(head)s and %(last)s": "%(head)s und %(last)s", "in %(months)s": "im %(months)s", "May": "Mai",
    }  # fmt: skip
    rule = Cron.parse("0 9 * may mon,fri", "Europe/Berlin")
    assert (
        describe(rule, lambda text: german.get(text, text)) == "um 09:00, am Montag und Freitag, im Mai (Europe/Berlin)"
    )


def test_a_broken_translation_shows_the_rule_raw() -> None:
    rule = Cron.parse("0 9 * * 1")
    assert describe(rule, lambda text: "%(nothing)s") == "0 9 * * 1 (UTC)" == raw(rule)


@given(crons())
def test_every_rule_has_words_and_its_zone(cron: Cron) -> None:
    assert describe(cron).endswith(f"({cron.tz.key})")


def test_a_day_with_a_clock_change_is_explained() -> None:
    fixed, wild = Cron.parse("30 2 * * *", "America/New_York"), Cron.parse("*/30 1 * * *", "America/New_York")
    assert note(fixed, at("2026-03-08T07:00")) == "02:30 does not exist that day: runs at 03:00"
    assert note(fixed, at("2026-03-09T06:30")) == ""
    early = Cron.parse("30 1 * * *", "America/New_York")
    assert note(early, at("2026-11-01T05:30")) == "01:30 comes twice that day: runs the first time only"
    assert note(wild, at("2026-11-01T06:30")) == "01:30 comes twice that day: runs both times"
    assert note(wild, at("2026-11-02T06:30")) == ""
    three = Cron.parse("0 3 * * *", "America/New_York")
    assert note(three, at("2026-03-08T07:00")) == "", "03:00 is its own time that day"
