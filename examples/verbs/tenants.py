"""Many tenants on one scheduler: each has its own reports, and one can be paused without the others noticing."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from small import app, run_until

import onebeat

reports: Counter[str] = Counter()


@app.task
def report(tenant: str, number: int) -> None:
    """Write one report."""
    reports[tenant] += 1


tenants = [f"tenant-{number}" for number in range(20)]
made = onebeat.once_many(
    {
        "key": f"{tenant}: report {number}",
        "at": timedelta(seconds=0.2),
        "task": report,
        "args": [tenant, number],
        "headers": {"tenant": tenant},
        "tags": [tenant],
    }
    for tenant in tenants
    for number in range(10)
)
print(f"{sum(one.created for one in made)} reports for {len(tenants)} tenants, in one call")

paused = onebeat.pause(onebeat.Tag("tenant-3"), "invoice overdue", by="billing")
print(f"tenant-3 is paused: {paused} reports wait")
run_until(
    lambda: reports.total() == 190 and onebeat.once(made[30].key, at=timedelta(0), task=report).state == "skipped"
)
print(f"{len(reports)} tenants have their reports; tenant-3 has {reports['tenant-3']}")
assert reports["tenant-3"] == 0

onebeat.resume(onebeat.Tag("tenant-3"), catch_up="latest", why="paid", by="billing")
run_until(lambda: reports["tenant-3"] == 10)
print(f"tenant-3 has paid and has {reports['tenant-3']} reports")
