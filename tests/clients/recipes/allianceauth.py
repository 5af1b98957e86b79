"""Alliance Auth: a whole application, with a scheduler, a schedule in its settings and tests of its own."""

from __future__ import annotations

from typing import Any

PACKAGES = ("allianceauth==5.5.0", "requests-mock", "django-webtest", "celery[redis]")
DID = "a new site; its scheduler with its declared schedule and offsets; admin; its own tests"
SECTION = "Alliance Auth"
NOT_SEEN = "the run was not finished"
START = "sh -c 'allianceauth start made && rm made/made/__init__.py made/made/settings/local.py'"
CWD = "made"
BEAT = "celery -A made beat"
OWN_TESTS = "django-admin test allianceauth --settings made.settings.local --noinput --parallel 2"
PATH = "{folder}/made"
FILES = (
    (
        "made/made/settings/local.py",
        """
{top}
from .base import *
import json

ROOT_URLCONF = "made.urls"
WSGI_APPLICATION = "made.wsgi.application"
SECRET_KEY = "only for tests"
STATIC_ROOT = "static"
SITE_NAME = "made"
SITE_URL = "https://example.com"
ALLOWED_HOSTS = ["*"]
CSRF_TRUSTED_ORIGINS = [SITE_URL]
DATABASES["default"] = json.loads(os.environ["CLIENT_DATABASE"])
CACHES["default"]["LOCATION"] = os.environ["CLIENT_REDIS"]
ESI_SSO_CALLBACK_URL = SITE_URL + "/sso/callback"
ESI_SSO_CLIENT_ID = ESI_SSO_CLIENT_SECRET = "x"
ESI_USER_CONTACT_EMAIL = "one@example.com"
REGISTRATION_VERIFY_EMAIL = False
ANALYTICS_DISABLED = True
BROKER_URL = "filesystem://"
LOGGING = dict(version=1)
# It wants no other option of its broker than its own; this one has folders.
SILENCED_SYSTEM_CHECKS = ["allianceauth.checks.B003"]
""",
    ),
    (
        "made/made/__init__.py",
        """
from .celery import app as celery_app

celery_app.conf.broker_transport_options |= dict(
    data_folder_in="../out", data_folder_out="../out", control_folder="../control"
)
""",
    ),
)


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def look() -> Any:
    from allianceauth.crontab.models import CronOffset
    from recipes import kit

    client = kit.browser()
    kit.page(client, "/admin/django_celery_beat/periodictask/")
    names = [row[0] for row in kit.tasks()]
    assert {"run_model_update", "esi_cleanup_token", "analytics_daily_stats"} <= set(names), names
    return [kit.tasks(), CronOffset.get_solo().minute]


def edit() -> None:
    from django_celery_beat.models import PeriodicTask
    from recipes import kit

    client, kind = kit.browser(), "/admin/django_celery_beat/periodictask/"
    task = PeriodicTask.objects.get(name="before")
    kit.submit(client, f"{kind}{task.pk}/change/", enabled="")
    kit.every_second("after")
