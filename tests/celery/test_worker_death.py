"""A worker that is killed in the middle of a body: the broker gives its messages to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.celery.desk import desk, kill
from tests.scratch import Templates

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(200)]


def test_what_a_death_after_the_start_means(templates: Templates, tmp_path: Path) -> None:
    """Under a guard for the whole app. Left as it is, the attempt is over; with `restart_after` it starts again."""
    modules = ["tests.celery.tasks", "tests.celery.guarded_app"]
    with desk(templates, tmp_path, "rabbitmq", "mariadb", modules=modules) as at:
        left, again = at.occurrence(), at.occurrence()
        with at.worker("prefork", "first") as first:
            at.send("late", left, "left")
            at.send("late_again", again, "again")
            at.wait_ran("left", "again")
            kill(first)
        at.let_go()
        with at.worker("solo", "second"):
            row = at.becomes(left, duplicate_deliveries=1)
            assert (row["state"], row["worker"]) == ("started", "first@here")
            row = at.becomes(again, state="succeeded", duplicate_deliveries=1)
            assert (row["attempt"], row["worker"]) == (0, "second@here")
        assert (at.ran("left"), at.ran("again")) == (1, 2)
