"""django-celery-beat's own test project with onebeat in its place, on a database of ours."""

# ruff: noqa: F401, F403
from t.proj.settings import *

import onebeat.takeover
from tests.project.settings import DATABASES
