"""Schedulers on hosts whose clocks are wrong: nothing is early, late or twice, and the difference is shown."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from tests.engine.fleet import LIMIT, Place, Spawn, disable, fleets, make_every_second, make_one_offs
from tests.processes import eventually
from tests.scratch import Templates

pytestmark = [pytest.mark.concurrency, pytest.mark.broker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(200)]

SKEW = timedelta(seconds=60)


def test_a_minute_ahead_and_a_minute_behind(templates: Templates, spawn: Spawn) -> None:
    with fleets(templates, spawn, Place("postgresql", "redis", 2)) as (fleet,):
        for skew in SKEW, -SKEW:
            command = ("-m", "tests.engine.fleet", "skewed", str(skew.total_seconds()))
            fleet.running.append(fleet.spawn(fleet.environment(), *command))
        fleet.wait_able()
        once = fleet.make(make_one_offs, "once", 200, 2.0, 5.0)
        every = fleet.make(make_every_second, "every second", 5)
        eventually(partial(fleet.has_sent, every[0], 8), LIMIT, "eight seconds of regular runs")
        fleet.make(disable, *every)
        eventually(partial(fleet.finished, len(once)), LIMIT, "the end of all tasks")
        skews = fleet.query("SELECT skew_ms FROM onebeat_beat ORDER BY skew_ms")
        fleet.stop()
        assert not fleet.differences(once=once, every=every)
        late = [row.sent_at - row.due_at for row in fleet.ledger() if row.sent_at]
        assert min(late) >= timedelta(0), "sent before its time"
        assert max(late) < SKEW / 2, "sent as late as a clock is behind"
        # As far off as they are, to what the machine and the round trip make of it.
        assert [round(skew / 20_000) for (skew,) in skews] == [-3, 3]
