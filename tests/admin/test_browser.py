"""The admin as people use it: a real browser, under a strict Content-Security-Policy.

Each test's tab fails it for an error in the console, a violation of the policy, or a request to anywhere else.
"""

from __future__ import annotations

import json
import re
import uuid
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.utils import translation

from onebeat.admin import actions
from onebeat.core import clock
from onebeat.models import Beat, CrontabSchedule, IntervalSchedule, Occurrence, PeriodicTask, TaskOptions
from onebeat.store import plans
from tests.processes import eventually

#: A Friday: the clocks of Paris change two nights later.
NOW = datetime(2026, 3, 27, 9, tzinfo=UTC)
ADD = "tests.project.tasks.add"


@pytest.fixture(autouse=True)
def pinned(request: pytest.FixtureRequest) -> Any:
    """The clock stands at NOW, unless other processes take part."""
    with clock.pin(NOW) if "spawn" not in request.fixturenames else nullcontext():
        yield


def expect(what: Any) -> Any:
    from playwright.sync_api import expect as assertion

    assertion.set_options(timeout=20_000)
    return assertion(what)


def every(amount: int, period: str = "minutes") -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=amount, period=period)[0]


def daily(hour: int, minute: int = 0) -> CrontabSchedule:
    value = {"minute": str(minute), "hour": str(hour), "timezone": "Europe/Paris"}
    return CrontabSchedule.objects.get_or_create(**value)[0]


def task(name: str, **fields: Any) -> PeriodicTask:
    fields = {"interval": every(5), **fields} if "crontab" not in fields else fields
    return PeriodicTask.objects.create(**{"name": name, "task": ADD, "args": "[1, 2]", **fields})


def planned() -> None:
    while plans.consume("default", 500):
        pass


def at_work() -> None:
    Beat.objects.create(host="web-1", pid=1, version="1", started_at=NOW, seen_at=NOW, able_since=NOW)


def occurred(of: PeriodicTask, state: str = "sent", minutes: float = 5, **fields: Any) -> None:
    at = NOW - timedelta(minutes=minutes)
    row = {
        "due_at": at,
        "decided_at": at,
        "sent_at": None if state == "skipped" else at,
        "celery_task_id": uuid.uuid4(),
    }
    Occurrence.objects.create(task=of, task_uid=of.pk, task_name=of.name, state=state, **{**row, **fields})


def save(page: Any) -> None:
    page.locator('input[name="_save"]').click()


@pytest.mark.parametrize(
    ("kind", "fields", "words", "first"),
    [
        ("interval", {"interval_every": "10", "interval_period": "minutes"}, "Every 10 minutes", "2026-03-27 09:10:00"),
        (
            "crontab",
            {"crontab_minute": "30", "crontab_hour": "2", "crontab_timezone": "Europe/Paris"},
            "At 02:30 (Europe/Paris)",
            "2026-03-28 02:30:00",
        ),
        (
            "solar",
            {"solar_event": "sunset", "solar_latitude": "48.85", "solar_longitude": "2.35"},
            "At sunset at 48.85, 2.35",
            "2026-03-27 18:13",
        ),
        (
            "clocked",
            {"clocked_clocked_time_0": "2026-04-01", "clocked_clocked_time_1": "12:00:00"},
            "Once at 2026-04-01 12:00:00 UTC",
            "2026-04-01 12:00:00",
        ),
    ],
)
def test_a_task_of_each_kind(tab: Any, kind: str, fields: dict[str, str], words: str, first: str) -> None:
    page = tab().open("periodictask_add")
    page.locator(f'input[name="kind"][value="{kind}"]').check()
    for other in {"interval", "crontab", "solar", "clocked"} - {kind}:
        for row in page.locator(f'.form-row:has([name^="{other}_"])').all():
            expect(row).to_be_hidden()  # the label and the help as well
    page.locator('[name="name"]').fill("New one")
    page.locator('[name="task"]').fill(ADD)
    page.locator('[name="args"]').fill("[1, 2]")
    for name, value in fields.items():
        field = page.locator(f'[name="{name}"]')
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
    expect(page.locator(".ob-words strong")).to_have_text(words)
    expect(page.locator(".ob-runs tbody tr").first).to_contain_text(first)
    save(page)
    expect(page.locator(".messagelist .success")).to_contain_text("New one")
    made = PeriodicTask.objects.get()
    assert (made.scheduler.KIND, made.one_off) == (kind, kind == "clocked")  # type: ignore[union-attr]


def test_the_preview_follows_what_is_typed(tab: Any) -> None:
    task("Other", crontab=daily(2, 30))
    page = tab().open("periodictask_add")
    page.locator('input[name="kind"][value="crontab"]').check()
    page.locator('[name="crontab_timezone"]').select_option("Europe/Paris")
    page.locator('[name="crontab_minute"]').fill("30")
    page.locator('[name="crontab_hour"]').fill("2")
    preview = page.locator(".ob-preview")
    expect(preview).to_contain_text("One other task runs on this schedule")
    expect(preview).to_contain_text("02:30 does not exist that day: runs at 03:00")
    expect(preview).to_contain_text("02:30 comes twice that day: runs the first time only")
    row = page.locator(".ob-runs tbody tr").first
    expect(row).to_contain_text("2026-03-28 02:30:00")
    expect(row).to_contain_text("2026-03-27 21:30:00")  # New York, the viewer's
    expect(row).to_contain_text("2026-03-28 01:30:00")  # UTC

    page.locator('[name="crontab_hour"]').fill("25")
    expect(page.locator(".field-crontab_hour .ob-error")).to_contain_text("'25' is not accepted")
    expect(page.locator('[name="crontab_hour"]')).to_have_attribute("aria-invalid", "true")
    page.locator('[name="crontab_hour"]').fill("3")
    expect(page.locator(".ob-error")).to_have_count(0)

    page.locator('[name="task"]').fill("shop.no_such_task")
    expect(preview).to_contain_text("No task of this name is registered here")
    page.locator('[name="task"]').fill(ADD)
    page.locator('[name="args"]').fill("[1]")
    expect(preview).to_contain_text("The arguments do not fit the task")
    page.locator('[name="args"]').fill("[1, ")
    expect(page.locator(".field-args .ob-error")).to_contain_text("this is not JSON")
    assert not PeriodicTask.objects.filter(task=ADD).exclude(name="Other").exists(), "a preview makes nothing"
    assert CrontabSchedule.objects.count() == 1


def test_an_edit_says_what_it_changes_and_changes_one_task(tab: Any) -> None:
    one, other = task("One", crontab=daily(9)), task("Other", crontab=daily(9))
    planned()
    page = tab().open("periodictask_change", one.pk)
    expect(page.locator(".ob-preview")).to_contain_text(
        "One other task runs on this schedule and stays as it is: Other."
    )
    page.locator('[name="crontab_hour"]').fill("10")
    expect(page.locator(".ob-runs tbody tr").first).to_contain_text("moved from Sat 2026-03-28 09:00:00")
    page.locator('[name="crontab_hour"]').fill("9,10")
    expect(page.locator(".ob-runs tbody tr").nth(0)).not_to_contain_text("new")
    expect(page.locator(".ob-runs tbody tr").nth(1)).to_contain_text("new")
    page.locator('[name="crontab_hour"]').fill("10")
    page.locator('[name="crontab_day_of_week"]').fill("1-5")
    expect(page.locator(".ob-runs")).to_contain_text("no longer")
    save(page)
    expect(page.locator(".messagelist .success")).to_contain_text("One")
    one.refresh_from_db(), other.refresh_from_db()
    assert (one.crontab.hour, other.crontab.hour) == ("10", "9")  # type: ignore[union-attr]


def test_an_error_after_saving_stands_on_its_field(tab: Any) -> None:
    page = tab(java_script_enabled=False).open("periodictask_add")
    page.locator('input[name="kind"][value="crontab"]').check()
    page.locator('[name="name"]').fill("Bad")
    page.locator('[name="task"]').fill(ADD)
    page.locator('[name="crontab_day_of_month"]').fill("31")
    page.locator('[name="crontab_month_of_year"]').fill("2")
    save(page)
    expect(page.locator(".field-crontab_day_of_month .errorlist").first).to_contain_text("31")
    assert not PeriodicTask.objects.exists()
    page.locator('[name="crontab_month_of_year"]').fill("3")
    save(page)
    expect(page.locator(".messagelist .success")).to_contain_text("Bad")


def test_a_pause_and_its_end_with_the_keyboard_alone(tab: Any) -> None:
    one = task("One")
    planned()
    page = tab().open("periodictask_change", one.pk)
    page.locator(".object-tools a", has_text="Pause").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/act/pause/"))
    page.locator('[name="why"]').focus()
    page.keyboard.type("The warehouse is counting")
    page.locator('[name="until_0"]').focus()
    page.keyboard.type("2026-03-28")
    page.locator('[name="until_1"]').focus()
    page.keyboard.type("12:00:00")
    page.keyboard.press("Enter")
    expect(page.locator(".messagelist .success")).to_contain_text("Pause: 1 task.")
    options = TaskOptions.objects.get()
    assert (options.paused, options.paused_until, options.paused_why, options.paused_by) == (
        *(True, NOW + timedelta(hours=27), "The warehouse is counting", "admin"),
    )
    page = tab().open("periodictask_history", one.pk)
    expect(page.locator("#change-history")).to_contain_text("Paused until 2026-03-28 12:00:00 UTC. The warehouse")
    page = tab().open("periodictask_changelist")
    expect(page.locator(".field-status_badge")).to_contain_text("paused")
    expect(page.locator(".field-status_badge")).to_contain_text("The warehouse is counting")


def test_actions_on_many_and_one_that_does_not_fit(tab: Any) -> None:
    tasks = [task(f"Task {number}") for number in range(3)]
    PeriodicTask.objects.filter(pk=tasks[1].pk).update(enabled=False)
    page = tab().open("periodictask_changelist")
    page.locator("#action-toggle").check()
    page.locator('select[name="action"]').select_option("disable")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page.locator(".ob-act")).to_contain_text("Nothing runs until it is enabled again.")
    assert PeriodicTask.objects.filter(enabled=True).count() == 2, "it asks before it acts"
    page.locator('[name="why"]').fill("Move to the new shop")
    page.locator('.ob-act input[type="submit"]').click()
    expect(page.locator(".messagelist .success")).to_contain_text("Disable: 2 tasks.")
    expect(page.locator(".messagelist .warning")).to_contain_text("Task 1 was left as it is: it is off already.")
    assert not PeriodicTask.objects.filter(enabled=True).exists()

    page.locator(f'input[name="_selected_action"][value="{tasks[0].pk}"]').check()
    page.locator('select[name="action"]').select_option("duplicate")
    page.get_by_role("button", name="Go", exact=True).click()
    page.locator('.ob-act input[type="submit"]').click()
    expect(page.locator('[name="name"]')).to_have_value("Task 0 (copy)")


def test_an_action_on_many_goes_on_by_itself(tab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actions, "PORTION", 2)
    for number in range(5):
        task(f"Task {number}")
    page = tab().open("periodictask_changelist")
    page.locator("#action-toggle").check()
    page.locator('select[name="action"]').select_option("disable")
    page.get_by_role("button", name="Go", exact=True).click()
    page.locator('.ob-act input[type="submit"]').click()
    expect(page.locator(".messagelist .success")).to_contain_text("Disable: 5 tasks.")
    assert not PeriodicTask.objects.filter(enabled=True).exists()


def test_run_now_and_its_outcome_with_a_real_scheduler_and_worker(tab: Any, spawn: Any, tmp_path: Any) -> None:
    one = task("Never by itself", crontab=CrontabSchedule.objects.create(month_of_year="2", day_of_month="29"))
    folders = {name: str(tmp_path / name) for name in ("in", "control")}
    for folder in folders.values():
        Path(folder).mkdir()
    options = {"data_folder_in": folders["in"], "data_folder_out": folders["in"], "control_folder": folders["control"]}
    env = {
        "ONEBEAT_TEST_DB": json.dumps({**settings.DATABASES["default"], "NAME": str(connection.settings_dict["NAME"])}),
        "ONEBEAT_TEST_BROKER": "filesystem://",
        "ONEBEAT_TEST_CELERY": json.dumps({"CELERY_BROKER_TRANSPORT_OPTIONS": options}),
    }
    spawn(env, "-m", "tests.project.manage", "onebeat", "run")
    spawn(env, "-m", "celery", "-A", "tests.project.celery", "worker", "--pool", "solo", "--without-mingle")
    there = tab()
    page = there.open("periodictask_act", one.pk, "run_now")
    page.locator('[name="why"]').fill("To see it work")
    page.locator('.ob-act input[type="submit"]').click()
    expect(page.locator(".messagelist .success")).to_contain_text("Run now: 1 task.")

    def outcome() -> bool:
        found = there.open("occurrence_changelist", query=f"?task__id__exact={one.pk}")
        return "succeeded" in str(found.locator("#result_list .field-became").inner_text())

    eventually(outcome, 120, "the run's outcome in the list of occurrences")
    page = there.open("periodictask_changelist")
    expect(page.locator(".field-last_outcome")).to_contain_text("succeeded")
    expect(page.locator(".ob-banner")).to_have_count(0)
    page = there.open("periodictask_history", one.pk)
    expect(page.locator("#change-history")).to_contain_text("To see it work")


def test_a_schedule_in_use_is_not_deleted(tab: Any) -> None:
    shared = every(5)
    task("One"), task("Two")
    page = tab().open("intervalschedule_delete", shared.pk)
    expect(page.locator("#content")).to_contain_text("would require deleting the following protected related objects")
    expect(page.locator("#content")).to_contain_text("One")
    expect(page.locator('#content input[type="submit"]')).to_have_count(0)


def test_who_may_only_look_sees_all_and_changes_nothing(tab: Any) -> None:
    one = task("One", crontab=daily(9), kwargs='{"full": "<b>yes</b>"}')
    occurred(one)
    planned()
    looker = User.objects.create_user("looker", is_staff=True)
    names = ["periodictask", "occurrence", "crontabschedule", "beat", "taskstate"]
    looker.user_permissions.set(Permission.objects.filter(codename__in=[f"view_{name}" for name in names]))
    there = tab(looker)
    page = there.open("periodictask_changelist")
    expect(page.locator("#result_list")).to_contain_text("One")
    expect(page.locator('select[name="action"] option')).to_have_count(0)
    page = there.open("periodictask_change", one.pk)
    expect(page.locator("#content")).to_contain_text("at 09:00 (Europe/Paris)")
    expect(page.locator("#content")).to_contain_text('{"full": "<b>yes</b>"}')
    expect(page.locator("#content input:not([type=hidden]), #content textarea")).to_have_count(0)
    for name in ("periodictask_overview", "occurrence_changelist"):
        there.open(name)
    for path in (f"{one.pk}/act/pause/", "add/"):
        assert there.context.request.get(f"{there.url}/admin/django_celery_beat/periodictask/{path}").status == 403


def test_the_banner_and_the_overview(tab: Any) -> None:
    task("Late")
    for number in range(7):
        task(f"At midnight {number}", crontab=daily(0))
    task("Lost", task="shop.no_such_task", interval=every(90))
    planned()
    Beat.objects.create(host="web-1", pid=1, version="1", started_at=NOW, seen_at=NOW, able_since=NOW)
    clock.move(NOW + timedelta(minutes=7))
    page = tab().open("periodictask_overview")
    expect(page.locator(".ob-banner")).to_contain_text("No scheduler is at work.")
    expect(page.locator(".ob-section", has_text="Overdue")).to_contain_text("Late")
    expect(page.locator(".ob-section", has_text="Unknown tasks")).to_contain_text("shop.no_such_task")
    expect(page.locator("svg.ob-load").first).to_have_attribute(
        "aria-label", re.compile("2026-03-27 23:00 with 8 runs")
    )
    Beat.objects.update(seen_at=clock.host_now())
    page = tab().open("periodictask_overview")
    expect(page.locator(".ob-banner")).to_have_count(0)
    expect(page.locator(".ob-section", has_text="Schedulers").last).to_contain_text("web-1:1")


def filled() -> PeriodicTask:
    """Something of everything."""
    one = task("One", description="Notes for people")
    for number, state in enumerate(("sent", "succeeded", "failed", "skipped", "started", "claimed")):
        occurred(one, state, number + 1, reason="paused" if state == "skipped" else "")
    TaskOptions.objects.create(task=task("Two", crontab=daily(9)), paused=True, paused_why="Because")
    task("Lost", task="shop.no_such_task", enabled=False)
    planned()
    at_work()
    return one


PAGES = ["changelist", "add", "change", "overview", "act", "occurrences", "delete"]


def visit(there: Any, page: str, of: PeriodicTask) -> Any:
    match page:
        case "occurrences":
            return there.open("occurrence_changelist")
        case "act":
            return there.open("periodictask_act", of.pk, "pause")
        case "change" | "delete":
            return there.open(f"periodictask_{page}", of.pk)
    return there.open(f"periodictask_{page}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(tab: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # axe sets styles of its own while it looks, which the policy would report.
    one, there = filled(), tab(color_scheme=scheme, bypass_csp=True)
    # In the dark only colours are different.
    dark = scheme == "dark"
    options = {"resultTypes": ["violations"], **({"runOnly": ["color-contrast"]} if dark else {})}
    for name in ["changelist", "change", "overview"] if dark else PAGES:
        page = visit(there, name, one)
        if name in ("add", "change"):
            page.wait_for_selector(".ob-preview[data-fresh]")
        found = Axe().run(page, options=options).response["violations"]
        serious = [
            f"{name}: {fault['id']}: {node['html'][:200]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]
        assert serious == [], "\n".join(serious)


@pytest.mark.parametrize("language", ["en", "fa"])
def test_a_narrow_screen_needs_no_scrolling_sideways(tab: Any, language: str) -> None:
    one, there = filled(), tab(viewport={"width": 360, "height": 740}, locale=language)
    for name in PAGES:
        page = visit(there, name, one)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name


def test_other_languages_read_from_right_to_left_too(tab: Any) -> None:
    one = filled()
    with translation.override("fa"):
        paused = str(translation.gettext("paused"))
    assert paused != "paused"
    page = visit(tab(locale="fa"), "changelist", one)
    assert page.locator("html").get_attribute("dir") == "rtl"
    expect(page.locator("#result_list")).to_contain_text(paused)
