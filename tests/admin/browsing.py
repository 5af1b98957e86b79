"""One headless Chromium for a module of tests, and a tab of it that remembers everything that went wrong."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

#: A limit for what a page does, in milliseconds, for the slowest of machines.
LIMIT = 60_000
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """The browser of this machine."""
    for name in CHROMIUM:
        if path := shutil.which(name):
            return path
    reason = "no Chromium was found here: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser. Playwright runs an event loop in this thread, in which Django would refuse to work."""
    from playwright.sync_api import sync_playwright

    path, before = executable(), os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    with sync_playwright() as playwright:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
            yield browser
            browser.close()
        finally:
            os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE")
            if before is not None:
                os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


class Tab:
    """A page of the admin, seen by one user."""

    def __init__(self, browser: Any, url: str, user: Any, **context: Any) -> None:
        self.url = url
        self.faults: list[str] = []
        self.context = browser.new_context(
            **{"viewport": {"width": 1400, "height": 900}, "timezone_id": "America/New_York", **context}
        )
        self.context.set_default_timeout(LIMIT)
        self.context.set_default_navigation_timeout(LIMIT)
        self.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        client = Client()
        client.force_login(user)
        self.context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}])
        self.page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        # Violations of the policy are among them.
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} ({self.page.url})")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.faults.append(f"asked elsewhere: {request.url}")

    def open(self, name: str, *args: Any, query: str = "") -> Any:
        """Go to a page of ours by the name of its URL."""
        path = reverse(f"admin:django_celery_beat_{name}", args=args)
        response = self.page.goto(f"{self.url}{path}{query}")
        assert response.status == 200, (path, response.status)
        return self.page

    def close(self) -> None:
        self.context.close()
