"""A scheduler process that dies where it is told, on a host whose clock may be wrong."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from datetime import timedelta
from typing import Any


def main(order: dict[str, Any]) -> None:
    """`point`, `turn`: kill yourself when you come to that step for the `turn`-th time. `skew`: seconds ahead."""
    import django

    django.setup()
    from onebeat.conf import current
    from onebeat.dispatch.celery.dispatcher import CeleryDispatcher
    from onebeat.engine.assembly import Assembly
    from onebeat.engine.loop import Loop
    from onebeat.engine.stop import Stop
    from onebeat.engine.tick import Engine
    from tests.project.celery import app
    from tests.proof import shifted

    shifted.apply(timedelta(seconds=order.get("skew", 0)))
    passed = Counter[str]()

    def at(step: str) -> None:
        passed[step] += 1
        if step == order.get("point") and passed[step] == order.get("turn", 1):
            os.kill(os.getpid(), signal.SIGKILL)

    settings, stop = current(), Stop()
    dispatcher = CeleryDispatcher(app, plain_below=settings.plain_below)
    engine = Engine(Assembly(dispatcher, settings, at=at, stopping=stop.requested))
    with stop.on_signals():
        Loop(engine, stop).run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
