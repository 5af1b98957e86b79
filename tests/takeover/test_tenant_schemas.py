"""tenant-schemas-celery on onebeat: its own tests, and edits in a tenant's schema, in a project with django-tenants."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import services
from tests.processes import ROOT
from tests.takeover.releases import environments

HERE = Path(__file__).parent / "tenants"
PACKAGES = ["django-tenants==4.0.1", "tenant-schemas-celery==5.0.0"]


@pytest.mark.slow
def test_its_own_tests_pass_and_edits_of_tenants_are_seen() -> None:
    if "postgresql" in services.missing():
        pytest.skip("NOT RUN: django-tenants needs PostgreSQL")
    try:
        beside = Path(environments.beside(PACKAGES))
    except environments.NotHere as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT RUN: {reason}")
    services.url_of("postgresql")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, beside, ROOT))), "PYTEST_ADDOPTS": "",
           "DJANGO_SETTINGS_MODULE": "tests.takeover.tenants.settings", "BROKER_URL": "memory://"}  # fmt: skip
    tests = beside / "tenant_schemas_celery"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(beside),
         "-p", "no:cacheprovider", "-q", "--tb=short", str(tests / "db_scheduler_test.py"),
         str(tests / "test_scheduler.py"), str(HERE / "edits.py")],
        env=env, cwd=beside, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) == 24, done.stdout[-2000:]
