"""Tasks through onebeat's models, on any database: `python -m benchmarks.fill_orm KIND COUNT AT [RATE]`.

`daily`: COUNT tasks that are due once a day and next at AT (seconds of the epoch). `one_offs`: RATE of them per second
from AT on; each carries its time as its argument.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.child import up


def daily(count: int, at: float) -> None:
    from onebeat.models import IntervalSchedule, PeriodicTask

    every, _ = IntervalSchedule.objects.get_or_create(every=1, period=IntervalSchedule.DAYS)
    last = datetime.fromtimestamp(at, UTC) - timedelta(days=1)
    alike: dict[str, Any] = {"task": "benchmarks.nothing", "args": "[0]", "interval": every, "last_run_at": last}
    PeriodicTask.objects.bulk_create(PeriodicTask(name=f"task {n}", **alike) for n in range(count))


def one_offs(count: int, at: float, rate: float) -> None:
    import onebeat

    times = [at + n / rate for n in range(count)]
    onebeat.once_many(
        {"key": f"task {n}", "at": datetime.fromtimestamp(one, UTC), "task": "benchmarks.nothing", "args": [one]}
        for n, one in enumerate(times)
    )


def main() -> int:
    up()
    from onebeat.models import TaskState
    from onebeat.store import plans

    count, numbers = int(sys.argv[2]), [float(one) for one in sys.argv[3:]]
    {"daily": daily, "one_offs": one_offs}[sys.argv[1]](count, *numbers)
    while plans.consume("default", 1000):
        pass
    planned = TaskState.objects.exclude(wake_at=None).count()
    if planned != count:
        raise SystemExit(f"{planned} of {count} were planned")
    print(json.dumps({"planned": planned}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
