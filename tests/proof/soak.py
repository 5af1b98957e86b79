"""`make soak MINUTES=60`: 200 tasks every second, three schedulers, one killed at random every few seconds.

Tells what was sent, lost, sent twice and run twice, and how late; fails if a promise broke. On PostgreSQL and Redis.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.engine.fleet import Place
from tests.processes import spawning
from tests.proof import chaos, work
from tests.proof.cell import LATE, LIMIT
from tests.proof.scripts import SERVERS, Script, rest
from tests.scratch import Templates

PLACE = Place("postgresql", "redis", 3)
TASKS = 200


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    chaos.own_servers()
    templates = Templates()
    script = Script("soak", lambda cell: None)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="onebeat-soak-") as folder,
            spawning(Path(folder)) as spawn,
            chaos.opened(script, PLACE, templates, spawn, Path(folder), given.seed) as cell,
        ):
            rng, over = Random(given.seed), time.monotonic() + 60 * given.minutes
            print(chaos.line(chaos.HEAD), chaos.line("---" for _ in chaos.HEAD), sep="\n", flush=True)
            cell.begin()
            cell.recurring |= {f"soak {number}": "all" for number in range(given.tasks - len(work.RECURRING))}
            cell.give_work(0, 1.0)
            while time.monotonic() < over:
                rest(rng.uniform(2, 20))
                number = rng.randrange(PLACE.schedulers)
                cell.dies(number)
            # One worker that runs and records each message is slower than three schedulers.
            cell.finish(limit=max(LIMIT, LATE + 180 * given.minutes))
            verdict = cell.verdict()
    finally:
        templates.drop()
        for server in SERVERS.values():
            server.close()
    chaos.tell(verdict)
    return int(verdict.broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
