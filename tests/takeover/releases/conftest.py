"""Real releases, or the reason why they cannot be had here."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests import services
from tests.takeover.releases import environments

Ask = Callable[[str], str]


@pytest.fixture
def python_of() -> Ask:
    """The Python of a release. Where it cannot be had the test is skipped, in CI it fails."""

    def ask(release: str) -> str:
        try:
            return environments.python_of(release)
        except environments.NotHere as reason:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"NOT RUN: {reason}")

    return ask


@pytest.fixture
def redis() -> services.Broker:
    try:
        return services.Broker("redis", services.url_of("redis"))
    except services.Missing as reason:
        pytest.skip(f"NOT RUN: {reason}")
