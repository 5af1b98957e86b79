"""A reminder that follows the life of an order: the date moves, the customer pays, or it is too late for either."""

from __future__ import annotations

from datetime import timedelta

from small import app, run_until

import onebeat

reminded: list[int] = []


@app.task
def remind(order: int) -> None:
    """Write to the customer."""
    reminded.append(order)


def due(order: int, after: timedelta) -> onebeat.Once:
    """The order is to be paid by then; asked again, the date is another."""
    return onebeat.once(f"remind of order {order}", at=after, task=remind, args=[order], if_exists="reschedule")


for order in (1, 2, 3):
    due(order, timedelta(hours=1))

moved = due(1, timedelta(seconds=0.2))
print(f"order 1: the reminder {'moved' if moved.rescheduled else 'was sent already'}")
due(3, timedelta(seconds=0.2))
print(f"order 2: paid; the reminder is taken back: {onebeat.cancel('remind of order 2', 'paid', by='bank')}")

run_until(lambda: len(reminded) == 2)
late = due(1, timedelta(hours=2))
print(f"order 1: too late to move, the reminder is {late.state}; and to take back: {onebeat.cancel(late.key)}")
print("reminded:", sorted(reminded))
assert sorted(reminded) == [1, 3]
assert (moved.rescheduled, late.rescheduled, late.state) == (True, False, "sent")
