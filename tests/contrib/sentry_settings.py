"""The test project with Sentry, which sends to a stand-in for its server."""

import os

import sentry_sdk
from sentry_sdk.integrations.celery import CeleryIntegration

from tests.project.settings import *  # noqa: F403

sentry_sdk.init(
    dsn=os.environ["SENTRY_STAND_IN"],
    traces_sample_rate=0.0,
    integrations=[CeleryIntegration(monitor_beat_tasks=True, exclude_beat_tasks=["private.*"])],
)
