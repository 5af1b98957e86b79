"""The browser, started once for a module, tabs that fail a test for what went wrong in them, and a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.browsing import Tab, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser: Any, live_server: Any, admin_user: Any) -> Iterator[Callable[..., Tab]]:
    """Opens tabs under the strict policy; `tab()` is the superuser's."""
    opened: list[Tab] = []

    def make(user: Any = None, **context: Any) -> Tab:
        one = Tab(browser, live_server.url, user or admin_user, **context)
        opened.append(one)
        return one

    yield make
    for one in opened:
        one.close()
    assert [fault for one in opened for fault in one.faults] == []


@pytest.fixture
def client() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client
