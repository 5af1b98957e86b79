"""Settings for any contestant, from the environment.

BENCH_APP        its line in INSTALLED_APPS
BENCH_DB         a DATABASES entry as JSON
BENCH_SETTINGS   ONEBEAT as JSON
BENCH_ADMIN      not empty: with the admin
BENCH_BROKER, BENCH_QUEUE, BENCH_TRANSPORT   the broker's URL, the queue, transport options as JSON
BENCH_EXCHANGE   the type of the exchange that the queue is bound to; empty: Celery's default
BENCH_OBSERVER   who looks at each message (`observers`); empty: nobody
"""

from __future__ import annotations

import json
import os

from kombu import Exchange, Queue

DATABASES = {"default": json.loads(os.environ["BENCH_DB"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
SECRET_KEY = "only for benchmarks"
INSTALLED_APPS = ["django.contrib.contenttypes", *filter(None, [os.environ.get("BENCH_APP")])]
if os.environ.get("BENCH_ADMIN"):
    INSTALLED_APPS += [f"django.contrib.{name}" for name in ("auth", "sessions", "messages", "staticfiles", "admin")]
    MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ]
    _CONTEXT = ("template.context_processors.request", "contrib.auth.context_processors.auth")
    TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    *(f"django.{name}" for name in _CONTEXT),
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ]
    ROOT_URLCONF = "benchmarks.project.urls"
    STATIC_URL = "/static/"
    ALLOWED_HOSTS = ["*"]
ONEBEAT = json.loads(os.environ.get("BENCH_SETTINGS", "{}"))

CELERY_BROKER_URL = os.environ["BENCH_BROKER"]
CELERY_TASK_DEFAULT_QUEUE = os.environ["BENCH_QUEUE"]
CELERY_TIMEZONE = "UTC"
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_TRANSPORT_OPTIONS = json.loads(os.environ.get("BENCH_TRANSPORT", "{}"))
if _kind := os.environ.get("BENCH_EXCHANGE"):
    # A task's row that names `bench-KIND` and "bench.nothing" leads to this queue.
    _key = "bench.#" if _kind == "topic" else "bench.nothing"
    CELERY_TASK_QUEUES = [
        Queue(CELERY_TASK_DEFAULT_QUEUE, Exchange(f"bench-{_kind}", type=_kind), routing_key=_key),
    ]
