"""The testing kit that users get, used as they use it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import TestCase

from onebeat.api import cancel, once, pause, run_now
from onebeat.core import clock
from onebeat.models import Beat, Occurrence, Outage, PeriodicTask, TaskState
from onebeat.testing import Onebeat, OnebeatMixin, plugin
from onebeat.testing.moments import instant, span
from tests.engine.kit import cron, every, options, sql, task

pytestmark = pytest.mark.django_db

BERLIN = "Europe/Berlin"


def test_a_follow_up_in_three_lines(onebeat: Onebeat) -> None:
    once("remind", at=timedelta(days=3), task="shop.remind", args=[7])
    assert onebeat.advance(days=2, hours=23) == []
    onebeat.advance(hours=1)
    assert [(one.name, one.task, one.args) for one in onebeat.sent] == [("remind", "shop.remind", [7])]
    assert onebeat.sent[0].due_at == onebeat.sent[0].at == onebeat.now


@pytest.mark.parametrize(
    ("moment", "fixed", "hourly"),
    [
        # 02:30 is not there, and runs at the first instant after the gap.
        ("2027-03-28 01:59 Europe/Berlin", "2027-03-28 03:00", ["01:00", "02:00"]),
        ("2027-10-31 01:59 Europe/Berlin", "2027-10-31 02:30", ["00:00", "01:00"]),
    ],
)
def test_the_night_when_the_clocks_change(onebeat: Onebeat, moment: str, fixed: str, hourly: list[str]) -> None:
    task("fixed", crontab=cron("30", "2", timezone=BERLIN))
    task("hourly", crontab=cron("0", "*", timezone=BERLIN))
    onebeat.at(moment)
    onebeat.advance(hours=2)
    assert onebeat.times("fixed", BERLIN) == [fixed]
    assert [one[-5:] for one in onebeat.times("hourly", "UTC")] == hourly


def test_a_year(onebeat: Onebeat) -> None:
    task("weekly", crontab=cron("0", "9", day_of_week="mon"))
    task("month", crontab=cron("0", "18", day_of_month="L"))
    onebeat.at("2027-01-01 00:00 UTC")
    sent = onebeat.run_for("1 year")
    assert len([one for one in sent if one.name == "weekly"]) == 52
    assert onebeat.times("month", "UTC")[:3] == ["2027-01-31 18:00", "2027-02-28 18:00", "2027-03-31 18:00"]
    assert all(one.at == one.due_at for one in sent) and not Occurrence.objects.exclude(state="sent").exists()


@pytest.mark.parametrize(("point", "copies"), [("claimed", 1), ("published", 2), ("settled", 1)])
def test_a_scheduler_dies(onebeat: Onebeat, point: str, copies: int) -> None:
    task("t", interval=every(1, "hours"))
    onebeat.advance(minutes=59)
    onebeat.kill(point)
    onebeat.advance(minutes=2)
    assert len(onebeat.sent) == copies and len({one.id for one in onebeat.sent}) == 1
    assert Beat.objects.count() == 2
    onebeat.advance(hours=1)
    assert len(onebeat.sent) == copies + 1


def test_a_kill_that_nothing_comes_to_fails_the_test(onebeat: Onebeat) -> None:
    onebeat.kill("claimed")
    with pytest.raises(AssertionError, match="no scheduler came to the point 'claimed'"):
        onebeat.advance(hours=1)
    with pytest.raises(ValueError, match="point: claimed, published, settled are there, not 'sent'"):
        onebeat.kill("sent")


def test_an_outage_and_a_broker_that_is_away(onebeat: Onebeat) -> None:
    latest, skips = task("latest", interval=every(60)), task("skips", interval=every(60))
    options(skips, missed="skip")
    onebeat.advance(minutes=1)
    onebeat.clear()
    late = onebeat.outage(minutes=10, seconds=30)
    assert [(one.name, (one.at - one.due_at).total_seconds()) for one in late] == [("latest", 30)]
    assert Outage.objects.get().kind == "down"
    onebeat.clear()
    onebeat.broker_unavailable = True
    assert onebeat.advance("5 minutes") == []
    onebeat.broker_unavailable = False
    assert [one.name for one in onebeat.advance(seconds=1)] == ["latest"]
    assert Occurrence.objects.filter(task_id=latest.pk, state="skipped", reason="coalesced").exists()


def test_changes_past_the_orm_and_by_the_verbs_are_seen(onebeat: Onebeat) -> None:
    task("t", interval=every(60))
    onebeat.advance(minutes=1)
    sql("UPDATE django_celery_beat_periodictask SET enabled = %s", False)
    assert onebeat.advance(minutes=3) == []
    assert run_now("t").run == 1 and [one.run for one in onebeat.advance()] == [1]
    PeriodicTask.objects.update(enabled=True)
    pause("t", "why", timedelta(minutes=5))
    assert len(onebeat.advance(minutes=10)) == 6  # the one at the end of the pause among them
    once("gone", at=timedelta(minutes=1), task="a.b")
    assert cancel("gone") and "gone" not in [one.name for one in onebeat.advance(minutes=2)]


def test_the_clock_goes_anywhere_before_and_only_ahead_afterwards(onebeat: Onebeat) -> None:
    task("t", interval=every(1, "hours"))
    for moment in ("2031-01-01 00:00 UTC", "2019-06-01T12:00:00+02:00"):
        onebeat.at(moment)
        assert onebeat.sent == [] and TaskState.objects.get().due_at == onebeat.now + timedelta(hours=1)
    onebeat.advance(hours=1)
    onebeat.at(datetime(2019, 6, 1, 15, 30, tzinfo=UTC))
    assert [f"{one.due_at:%H:%M}" for one in onebeat.sent] == ["11:00", "15:00"]  # the newest, late
    with pytest.raises(ValueError, match="time does not go back"):
        onebeat.at("2019-06-01 12:00 UTC")


def test_the_body_runs_when_asked(onebeat: Onebeat) -> None:
    PeriodicTask.objects.create(
        name="sum", task="tests.project.tasks.add", args="[1]", kwargs='{"y": 2}', interval=every(60), queue="q"
    )
    import tests.project.tasks  # noqa: F401

    (one,) = onebeat.advance(minutes=1)
    assert (one.execute(), one.options["queue"]) == (3, "q")


def test_the_timeline_tells_what_happened(onebeat: Onebeat) -> None:
    task("t", interval=every(60))
    onebeat.at("2027-01-01 00:00 UTC")
    onebeat.kill("claimed")
    onebeat.advance(seconds=100)
    onebeat.outage(minutes=3)
    assert onebeat.timeline().splitlines() == [
        "2027-01-01 00:00:00  the clock is set to 2027-01-01 00:00 UTC",
        "2027-01-01 00:01:00  the scheduler dies (claimed)",
        "2027-01-01 00:01:30  t: due 2027-01-01 00:01:00: sent",
        "2027-01-01 00:01:40  0:01:40 have passed",
        "2027-01-01 00:04:40  t: due 2027-01-01 00:02:00: skipped (coalesced: into 2027-01-01T00:04:00+00:00)",
        "2027-01-01 00:04:40  t: due 2027-01-01 00:04:00: sent",
        "2027-01-01 00:04:40  0:03:00 have passed without a scheduler",
        "to come: t at 2027-01-01 00:05:00",
    ]


MOMENTS = [
    ("2027-03-28 01:59 Europe/Berlin", "2027-03-28T00:59:00+00:00"),
    ("2027-10-31 02:30 Europe/Berlin", "2027-10-31T00:30:00+00:00"),
    ("2027-03-28T01:59+02:00", "2027-03-27T23:59:00+00:00"),
    ("2027-03-28 01:59", "2027-03-28T01:59:00+00:00"),
]


@pytest.mark.parametrize(("text", "found"), MOMENTS)
def test_moments(text: str, found: str) -> None:
    assert instant(text).isoformat() == found


@pytest.mark.parametrize("text", ["2027-03-28 02:30 Europe/Berlin", "tomorrow", "2027-03-28 01:59 Mars/Base", ""])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="is no instant, such as '2027-03-28 01:59 Europe/Berlin'"):
        instant(text)


def test_spans() -> None:
    assert span("1 year", {}) == timedelta(days=365)
    assert span("2 hours 30 minutes", {"seconds": 5}) == timedelta(hours=2, minutes=30, seconds=5)
    assert span(timedelta(days=1), {}) == timedelta(days=1)
    for text, units in (
        ("soon", {}),
        ("5 moons", {}),
        ("5 hours!", {}),
        (None, {"years": 1.0}),
        (None, {"days": -1.0}),
    ):
        with pytest.raises(ValueError):
            span(text, units)


class TestMixin(OnebeatMixin, TestCase):
    def test_it_is_there(self) -> None:
        once("remind", at=timedelta(hours=1), task="shop.remind")
        self.onebeat.advance(hours=1)
        self.assertEqual([one.name for one in self.onebeat.sent], ["remind"])


def test_the_mixin_adds_the_timeline_and_lets_the_clock_go() -> None:
    class Fails(OnebeatMixin, TestCase):
        def runTest(self) -> None:
            self.onebeat.at("2027-01-01 00:00 UTC")
            self.fail("because")

    result: Any = Fails("runTest").run()
    ((_, text),) = result.failures
    assert "because" in text and "2027-01-01 00:00:00  the clock is set to" in text
    assert clock.pinned() is None


def test_with_pytest_the_timeline_stands_under_a_test_that_fails(
    onebeat: Onebeat, request: pytest.FixtureRequest
) -> None:
    onebeat.at("2027-01-01 00:00 UTC")

    def told(when: Any, outcome: Any) -> list[tuple[str, str]]:
        report = pytest.TestReport("t", ("t", 1, "t"), {}, outcome, None, when)
        call = pytest.CallInfo.from_call(lambda: None, when)
        hook = plugin.pytest_runtest_makereport(request.node, call)
        next(hook)
        with pytest.raises(StopIteration) as done:
            hook.send(report)
        assert done.value.value is report
        return report.sections

    assert told("call", "passed") == told("teardown", "failed") == []
    ((title, text),) = told("call", "failed")
    assert title == "onebeat timeline (UTC)" and text.startswith("2027-01-01 00:00:00  the clock is set to")
