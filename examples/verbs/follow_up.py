"""A worker decides at run time what has to happen later, and may be run twice: the follow-up happens once."""

from __future__ import annotations

from datetime import timedelta

from small import app, run_until

import onebeat

asked: list[str] = []


@app.task
def place_order(order: int) -> None:
    """The order is placed; in a while the customer is asked how it was."""
    made = onebeat.once(f"survey of order {order}", at=timedelta(seconds=0.3), task=survey, args=[order])
    print(f"order {order} placed; survey {'scheduled' if made.created else 'known already'} for {made.at:%H:%M:%S}")


@app.task
def survey(order: int) -> None:
    """Ask the customer."""
    asked.append(f"order {order}")


place_order.delay(7)
place_order.delay(7)  # a broker may deliver a message twice
place_order.delay(8)
run_until(lambda: len(asked) == 2)
print("asked:", ", ".join(sorted(asked)))
assert sorted(asked) == ["order 7", "order 8"]
