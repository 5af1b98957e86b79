"""Many processes schedule follow-ups at the same few instants, each as if it were alone. Prints what they saw as JSON.

`python race.py PROCESSES OWN INSTANT...`: at each instant every process adds OWN follow-ups of its own, and one that
all of them want.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import traceback
from datetime import datetime
from typing import Any

import django


def schedule(racer: int, own: int, instants: list[str], barrier: Any, answers: Any) -> None:
    """One process: for each instant, what any worker of any project does."""
    from onebeat.models import ClockedSchedule, PeriodicTask

    seen: dict[str, Any] = {"errors": [], "created": [0] * len(instants), "tasks": [0] * len(instants)}
    for number, text in enumerate(instants):
        barrier.wait(60)
        try:
            clocked, created = ClockedSchedule.objects.get_or_create(clocked_time=datetime.fromisoformat(text))
            seen["created"][number] += created
            for one in range(own):
                order = f"{number}-{racer}-{one}"
                PeriodicTask.objects.create(
                    name=f"follow up order {order}",
                    task="shop.tasks.follow_up",
                    clocked=clocked,
                    one_off=True,
                    args=json.dumps([order]),
                )
            _, created = PeriodicTask.objects.get_or_create(
                name=f"close batch {number}",
                defaults={
                    "task": "shop.tasks.follow_up",
                    "clocked": clocked,
                    "one_off": True,
                    "args": json.dumps([f"batch {number}"]),
                },
            )
            seen["tasks"][number] += created
        except Exception:
            seen["errors"].append([number, traceback.format_exc()])
    answers.put(seen)


def main(processes: int, own: int, instants: list[str]) -> None:
    """Fork the racers from one warm process that has no connection, and collect their answers."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    django.setup()
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(processes), context.Queue()
    racers = [
        context.Process(target=schedule, args=(number, own, instants, barrier, answers)) for number in range(processes)
    ]
    for racer in racers:
        racer.start()
    print(json.dumps([answers.get(timeout=90) for _ in racers]))
    for racer in racers:
        racer.join()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
