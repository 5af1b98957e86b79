"""What the recipes share. Runs in a client's project."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any


def every_second(name: str, **fields: Any) -> Any:
    """A task that is due each second."""
    from django_celery_beat.models import IntervalSchedule, PeriodicTask

    often, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    return PeriodicTask.objects.create(name=name, task="shop.tasks.tidy_up", interval=often, **fields)


def furnish() -> None:
    """A task of each other kind of schedule, and schedules that are there twice, as real tables have them."""
    from django.utils import timezone
    from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask

    for name in ("crontab", "crontab again"):
        night = CrontabSchedule(minute="30", hour="4", day_of_week="1-5", timezone="Europe/Paris")
        CrontabSchedule.objects.bulk_create([night])
        PeriodicTask.objects.create(name=name, task="shop.tasks.tidy_up", crontab=CrontabSchedule.objects.latest("pk"))
    once = ClockedSchedule.objects.create(clocked_time=timezone.now() + timedelta(days=400))
    PeriodicTask.objects.create(name="clocked", task="shop.tasks.tidy_up", clocked=once, one_off=True)
    hours = IntervalSchedule.objects.create(every=9, period="hours")
    PeriodicTask.objects.create(name="paused", task="shop.tasks.remind", args="[7]", interval=hours, enabled=False)


def browser(host: str = "localhost") -> Any:
    """Django's test client, logged in as a superuser."""
    from django.contrib.auth import get_user_model
    from django.test import Client
    from django.test.utils import setup_test_environment

    with suppress(RuntimeError):  # it is done once for each process
        setup_test_environment()  # answers have a context then
    users = get_user_model()
    user = users.objects.filter(username="root").first() or users.objects.create_superuser("root", "root@test.com", "x")
    client = Client(SERVER_NAME=host)
    client.force_login(user)
    return client


def page(client: Any, path: str) -> str:
    """The text of a page, which must answer with 200."""
    answer = client.get(path, follow=True)
    text = answer.content.decode()
    assert answer.status_code == 200, f"{path}: {answer.status_code} {text[:2000]}"
    return text


def submit(client: Any, path: str, **changed: str) -> None:
    """Send a page's form as a browser would, with these fields changed. It must be taken."""
    from browser_forms import sent

    answer = client.post(path, {**sent(page(client, path)), **changed})
    assert answer.status_code == 302, f"{path}: {answer.status_code} {errors(answer)}"


def errors(answer: Any) -> Any:
    """What a refused form says."""
    form = getattr((answer.context or {}).get("adminform"), "form", None) or (answer.context or {}).get("form")
    return form.errors if form is not None and form.errors else answer.content.decode()[:3000]


def tasks() -> list[list[Any]]:
    """What everybody sees: each task and its schedule."""
    from django_celery_beat.models import PeriodicTask

    rows = PeriodicTask.objects.exclude(name__startswith="celery.").order_by("name")
    return [[row.name, row.task, row.args, row.enabled, str(row)] for row in rows]
