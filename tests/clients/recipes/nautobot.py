"""Nautobot: a whole application, whose scheduler reads a table of its own."""

from __future__ import annotations

from typing import Any

PACKAGES = ("nautobot==3.2.7",)
DID = "its scheduler, in classic mode, sends scheduled jobs; one is switched off, one added; admin and pages of jobs"
SECTION = "Nautobot"
NOT_SEEN = "its migrations were not finished in the time there was"
DATABASE = "postgresql"
MANAGE = "nautobot-server"
MIGRATE = "nautobot-server migrate --verbosity=0"
BEAT = "nautobot-server celery beat"
ENV = (("NAUTOBOT_CONFIG", "{folder}/nautobot_config.py"), ("NAUTOBOT_ROOT", "{folder}"))
FILES = (
    (
        "nautobot_config.py",
        """
{top}
from nautobot.core.settings import *
import json
import os

SECRET_KEY = "only for tests, and long enough for what asks for fifty characters"
ALLOWED_HOSTS = ["*"]
INSTALLATION_METRICS_ENABLED = False
DATABASES = dict(default=json.loads(os.environ["CLIENT_DATABASE"]))
CACHES = dict(default=dict(BACKEND="django.core.cache.backends.locmem.LocMemCache"))
CELERY_BROKER_URL = "filesystem://"
CELERY_BROKER_TRANSPORT_OPTIONS = dict(data_folder_in="out", data_folder_out="out", control_folder="control")
CELERY_BEAT_HEARTBEAT_FILE = "heartbeat"
""",
    ),
)
#: The jobs by which messages are told apart.
JOBS = {"before": "nautobot.core.jobs.cleanup.LogsCleanup", "after": "nautobot.core.jobs.ExportObjectList"}


def name_of(message: dict[str, Any]) -> str | None:
    said = message["headers"]["argsrepr"]
    return next((name for name, job in JOBS.items() if job in said), None)


def build() -> None:
    from recipes import kit

    kit.furnish()
    each_minute("before")


def each_minute(name: str) -> None:
    from datetime import timedelta

    from django.contrib.auth import get_user_model
    from django.utils import timezone
    from nautobot.extras.models import Job, ScheduledJob
    from recipes import kit

    kit.browser()  # makes the user
    module, _, class_name = JOBS[name].rpartition(".")
    job = Job.objects.get(module_name=module, job_class_name=class_name)
    ScheduledJob.create_schedule(
        job, get_user_model().objects.get(username="root"), name=name, crontab="* * * * *", interval="custom",
        start_time=timezone.localtime() - timedelta(minutes=5), job_kwargs={},
    )  # fmt: skip


def look() -> Any:
    from nautobot.extras.models import ScheduledJob
    from recipes import kit

    client = kit.browser()
    for path in ("/admin/django_celery_beat/periodictask/", "/extras/scheduled-jobs/", "/extras/jobs/"):
        kit.page(client, path)
    jobs = ScheduledJob.objects.order_by("name").values_list("name", "task", "crontab", "enabled")
    return [kit.tasks(), list(map(list, jobs))]


def edit() -> None:
    from nautobot.extras.models import ScheduledJob

    job = ScheduledJob.objects.get(name="before")
    job.enabled = False
    job.save()
    each_minute("after")
