"""What is to be done."""

from __future__ import annotations

from datetime import date, timedelta

from celery import Task, shared_task

import onebeat


@shared_task
def friday_report() -> str:
    """On the last Friday of a month. The rule says it all."""
    return "the last Friday"


@shared_task(bind=True)
def closing_report(self: Task, day: str | None = None) -> str | None:
    """On the last working day of a month.

    No crontab can say that: in some months it is the 28th, in others the 31st. So the rule names the days on which it
    may be, and the task, which knows the nominal time from its message's header, tells whether it is.
    """
    today = date.fromisoformat(day or self.request.get("onebeat_due_at")[:10])
    monday_or_next = today + timedelta(days=3 if today.weekday() == 4 else 1)
    return "the last working day" if monday_or_next.month != today.month else None


@shared_task
def remind(order: int) -> str:
    """Write to the customer."""
    return f"order {order} is not paid"


def place_order(order: int) -> None:
    """Somebody orders, and has three days to pay."""
    onebeat.once(f"remind of order {order}", at=timedelta(days=3), task=remind, args=[order])


def paid(order: int) -> None:
    """Nothing to remind of."""
    onebeat.cancel(f"remind of order {order}", "paid")
