"""A database without autocommit is refused when a scheduler starts, instead of failing for ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from onebeat import checks
from onebeat.engine.loop import new_loop
from onebeat.testing.scheduler import Outbox


@pytest.fixture
def without_autocommit() -> Iterator[None]:
    settings = connections["default"].settings_dict
    before = settings["AUTOCOMMIT"]
    settings["AUTOCOMMIT"] = False
    yield
    settings["AUTOCOMMIT"] = before


@pytest.mark.usefixtures("without_autocommit")
def test_it_is_refused_by_the_check_and_at_the_start() -> None:
    assert [message.id for message in checks.check_autocommit(["default"])] == ["onebeat.E005"]
    with pytest.raises(ImproperlyConfigured, match="AUTOCOMMIT"):
        new_loop(Outbox(), "default", lambda: None)


def test_with_autocommit_nothing_is_said() -> None:
    assert checks.check_autocommit(["default"]) == []
