"""The pages under django-unfold, which brings templates of its own for all that Django has."""

from __future__ import annotations

from typing import Any

import pytest

from tests import services
from tests.processes import run_python
from tests.scratch import Scratch, Templates


def pages() -> dict[str, Any]:
    """Each page: its status, and what of ours is on it. Then what the form answers, and how many tasks there are."""
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import reverse

    from onebeat.models import IntervalSchedule, PeriodicTask

    every = IntervalSchedule.objects.create(every=5, period="minutes")
    task = PeriodicTask.objects.create(name="One", task="shop.report", interval=every)
    client = Client()
    client.force_login(User.objects.create_superuser("root"))

    def url(name: str, *args: Any) -> str:
        return reverse(f"admin:django_celery_beat_{name}", args=args)

    wanted = {
        "list": (url("periodictask_changelist"), "every 5 minutes"),
        "add": (url("periodictask_add"), "ob-preview"),
        "change": (url("periodictask_change", task.pk), "ob-preview"),
        "overview": (url("periodictask_overview"), "ob-load"),
        "pause": (url("periodictask_act", task.pk, "pause"), "ob-act"),
        "occurrences": (url("occurrence_changelist"), "ob-banner"),
    }
    found: dict[str, Any] = {}
    for name, (path, sign) in wanted.items():
        response = client.get(path)
        found[name] = [response.status_code, sign in response.content.decode()]
    form = {
        "name": "Two",
        "task": "shop.report",
        "args": "[]",
        "kwargs": "{}",
        "headers": "{}",
        "kind": "interval",
        "interval_every": "7",
        "interval_period": "hours",
        "onebeat_options-TOTAL_FORMS": "0",
        "onebeat_options-INITIAL_FORMS": "0",
    }
    found["saved"] = [client.post(url("periodictask_add"), form).status_code, PeriodicTask.objects.count() == 2]
    return found


def test_every_page_works_with_django_unfold(templates: Templates) -> None:
    pytest.importorskip("unfold")
    kind = services.database("sqlite")
    with Scratch.open(kind, templates.of(kind)) as scratch:
        found = run_python({**scratch.env, "ONEBEAT_TEST_THEME": "unfold"}, pages)
    assert found.pop("saved") == [302, True]
    assert {name: answer for name, answer in found.items() if answer != [200, True]} == {}
