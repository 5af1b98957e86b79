"""The pictures in docs/screenshots: `make screenshots`. No test by name, since it writes into the tree."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from onebeat.core import clock
from onebeat.models import (
    Beat,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    Occurrence,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
)
from onebeat.store import plans
from tests.processes import ROOT

FOLDER = ROOT / "docs" / "screenshots"
NOW = datetime(2026, 3, 27, 9, 12, tzinfo=UTC)
ADD = "tests.project.tasks.add"


def cron(**fields: str) -> CrontabSchedule:
    return CrontabSchedule.objects.get_or_create(**{"minute": "0", "timezone": "Europe/Paris", **fields})[0]


def every(amount: int, period: str) -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=amount, period=period)[0]


def shop() -> PeriodicTask:
    """A shop with something of everything; its invoices are what the form shows."""
    sunset = SolarSchedule.objects.create(event="sunset", latitude="48.85", longitude="2.35")
    friday = ClockedSchedule.objects.create(clocked_time=NOW + timedelta(days=7, hours=3))
    tasks = {
        name: PeriodicTask.objects.create(**{"name": name, "task": ADD, "args": "[1, 2]", **fields})
        for name, fields in {
            "Send invoices": {"crontab": cron(hour="9", day_of_week="mon-fri"), "description": "Runbook 12"},
            "Nightly report": {"crontab": cron(hour="2", minute="30")},
            "Sync stock": {"interval": every(5, "minutes")},
            "Heartbeat": {"interval": every(30, "seconds")},
            "Close the shutters": {"solar": sunset},
            "Remind order 42": {"clocked": friday, "one_off": True},
            "Old importer": {"crontab": cron(hour="8-18", minute="*/20"), "task": "legacy.tasks.import_all"},
            "Winter sale": {"interval": every(1, "days"), "enabled": False},
        }.items()
    }
    for number in range(48):
        name, fields = f"Tenant {number:02} digest", {"hour": "0", "minute": "0" if number % 3 else "15"}
        PeriodicTask.objects.create(name=name, task=ADD, args="[1, 2]", crontab=cron(timezone="UTC", **fields))
    pause = {"paused": True, "paused_until": NOW + timedelta(days=1), "paused_why": "Stocktaking", "paused_by": "anna"}
    TaskOptions.objects.create(task=tasks["Sync stock"], **pause)
    past(list(tasks.values()))
    while plans.consume("default", 500):
        pass
    Beat.objects.create(
        host="web-1", pid=421, version="0.1.0", lag_ms=4, skew_ms=-2, able_since=NOW, seen_at=NOW,
        started_at=NOW - timedelta(days=3),
    )  # fmt: skip
    return tasks["Send invoices"]


def past(tasks: list[PeriodicTask]) -> None:
    """What they did lately, the same each time."""
    dice = random.Random(7)
    for task in tasks[:5]:
        for number in range(30, 0, -1):
            due = NOW - timedelta(minutes=13 * number)
            (state,) = dice.choices(["succeeded", "failed", "skipped"], [12, 1, 1])
            if task is tasks[2] and number < 4:
                state = "skipped"
            sent = None if state == "skipped" else due + timedelta(seconds=dice.choice([0.02, 0.05, 0.05, 3]))
            row: dict[str, Any] = {
                "task": task,
                "task_uid": task.pk,
                "task_name": task.name,
                "due_at": due,
                "decided_at": due,
            }
            Occurrence.objects.create(
                **row,
                state=state,
                reason="paused" if state == "skipped" else "",
                error="ConnectionError: billing did not answer" if state == "failed" else "",
                sent_at=sent,
                started_at=sent,
                finished_at=sent and sent + timedelta(seconds=dice.uniform(0.1, 4)),
                celery_task_id=uuid.UUID(int=dice.getrandbits(128), version=4),
            )


@pytest.mark.parametrize("width", [360, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures(tab: Any, scheme: str, width: int) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with clock.pin(NOW):
        invoices = shop()
        there = tab(color_scheme=scheme, viewport={"width": width, "height": 900})

        def picture(name: str, page: Any) -> None:
            clip = {"x": 0, "y": 0, "width": width, "height": 1600} if width < 1000 else None
            page.screenshot(path=Path(FOLDER / f"{name}-{width}-{scheme}.png"), full_page=bool(clip), clip=clip)

        picture("list", there.open("periodictask_changelist"))
        page = there.open("periodictask_change", invoices.pk)
        page.locator('[name="crontab_hour"]').fill("10")
        page.wait_for_selector(".ob-fate")
        page.locator(".ob-schedule").first.scroll_into_view_if_needed()
        page.evaluate("document.querySelector('.ob-schedule').scrollIntoView()")
        picture("form", page)
        picture("overview", there.open("periodictask_overview"))
        picture("occurrences", there.open("occurrence_changelist"))
        picture("pause", there.open("periodictask_act", invoices.pk, "pause"))
        shared = PeriodicTask.objects.get(name="Tenant 00 digest").crontab
        picture("refusal", there.open("crontabschedule_delete", shared.pk))
        looker = User.objects.create_user("looker", is_staff=True)
        looker.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
        views = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        picture("view-only", tab(looker, **views).open("periodictask_change", invoices.pk))
