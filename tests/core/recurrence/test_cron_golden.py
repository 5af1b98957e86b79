"""Forty rules around clock changes, with their next three runs."""

from __future__ import annotations

from typing import Any

import pytest

from onebeat.core.recurrence import Cron
from tests.core.vectors import vectors
from tests.core.walking import runs

VECTORS = vectors("recurrence")


def test_all_vectors_are_here() -> None:
    assert len(VECTORS) == 40


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_the_next_three_runs(vector: dict[str, Any]) -> None:
    assert runs(Cron.parse(vector["cron"], vector["tz"]), vector["from"]) == vector["next"]
