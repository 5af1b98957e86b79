"""Adds a one-off in the far future every 200 ms: `python -m benchmarks.writer CONTESTANT START UNTIL`."""

from __future__ import annotations

import importlib
import json
import sys
import time
from datetime import UTC, datetime, timedelta


def main() -> int:
    contestant, start, until = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    import django

    django.setup()
    found = importlib.import_module(f"benchmarks.contestants.{contestant}")
    added, at = 0, start
    while at < until:
        time.sleep(max(0.0, at - time.time()))
        when = datetime.now(UTC) + timedelta(days=1)
        schedule = found.ClockedSchedule.objects.create(clocked_time=when)
        found.PeriodicTask.objects.create(
            name=f"added {added}", task="benchmarks.nothing", clocked=schedule, one_off=True
        )
        added, at = added + 1, at + 0.2
    print(json.dumps({"added": added}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
