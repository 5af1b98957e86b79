"""How to test a schedule: the real engine, the database of the test, and a clock that the test turns."""

from __future__ import annotations

from books.tasks import paid, place_order


def test_who_does_not_pay_is_reminded_after_three_days(onebeat):
    place_order(7)
    onebeat.advance(days=3)
    assert [one.execute() for one in onebeat.sent] == ["order 7 is not paid"]


def test_who_pays_is_not(onebeat):
    place_order(7)
    onebeat.advance(days=2)
    paid(7)
    onebeat.advance("1 week")
    assert onebeat.sent == []


def test_the_friday_report_keeps_its_time_when_the_clocks_change(onebeat):
    onebeat.declare()
    onebeat.at("2027-03-01 00:00 Europe/Paris")
    onebeat.run_for("61 days")
    assert onebeat.times("friday report", "Europe/Paris") == ["2027-03-26 18:00", "2027-04-30 18:00"]


def test_a_report_that_is_more_than_twelve_hours_late_is_left_out(onebeat):
    onebeat.declare()
    onebeat.at("2027-03-30 17:00 Europe/Paris")
    assert [one.name for one in onebeat.outage(hours=3)] == ["closing report"]
    assert onebeat.outage(hours=46) == []  # the one of the 31st


def test_a_scheduler_that_dies_loses_nothing(onebeat):
    place_order(7)
    onebeat.kill("claimed")
    onebeat.advance(days=3, minutes=1)
    assert len(onebeat.sent) == 1
