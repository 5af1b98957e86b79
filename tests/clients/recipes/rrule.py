"""django-celery-beat-rrule: a child model of PeriodicTask with a schedule kind of its own, and a scheduler for it."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-celery-beat-rrule==0.0.3",)
DID = "its scheduler, in classic mode, sends tasks on rules of its own table; one is switched off and one added"
SETTINGS = 'INSTALLED_APPS += ["django_celery_beat_rrule"]'
BEAT = "celery -A proj beat -S django_celery_beat_rrule.schedulers:RruleDatabaseScheduler"


def build() -> None:
    from recipes import kit

    kit.furnish()
    often("before")


def often(name: str) -> None:
    """A task on a rule that names each second."""
    import json
    from datetime import UTC, datetime, timedelta

    from django_celery_beat_rrule.models import RrulePeriodicTask, RruleSchedule

    start = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y%m%dT%H%M%S")
    text = {"rrule": [f"DTSTART:{start}\nRRULE:FREQ=SECONDLY"], "rdate": [], "exrule": [], "exdate": []}
    rule = RruleSchedule.objects.create(rrule=json.dumps(text))
    task = RrulePeriodicTask(name=name, task="shop.tasks.tidy_up", rrule=rule)
    task.full_clean()
    task.save()


def look() -> Any:
    from django_celery_beat_rrule.models import RrulePeriodicTask
    from recipes import kit

    rows = RrulePeriodicTask.objects.exclude(name__startswith="celery.").order_by("name")
    return [kit.tasks(), [[str(row), row.task, row.enabled] for row in rows]]


def edit() -> None:
    from django_celery_beat.models import PeriodicTasks
    from django_celery_beat_rrule.models import RrulePeriodicTask

    task = RrulePeriodicTask.objects.get(name="before")
    task.enabled = False
    task.save()
    often("after")
    PeriodicTasks.update_changed()
