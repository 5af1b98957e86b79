"""onebeat beside django-celery-beat and celery-redbeat, and beside the limits of the machine: what `make bench` runs.

    python -m benchmarks.run [--short] [--sizes MOST] [--only due,idle] [--results FOLDER]

Servers are started for the run and removed after it. Every contestant works in turn, on a database of its own. Results:
a table on the screen, and the same with plots and all values under benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import goals, machine, plots, report, rivals
from benchmarks.figures import Figure
from benchmarks.measures import (
    alone,
    creation,
    due,
    elsewhere,
    idle,
    lateness,
    limits,
    observed,
    pages,
    pruning,
    recovery,
    routing,
    sweep,
    workers,
)
from benchmarks.sizes import Sizes
from benchmarks.world import Failed, World
from tests.services import Missing

HERE = Path(__file__).parent
MEASURES: dict[str, Callable[[World, Sizes], Iterator[Figure]]] = {
    "limits": limits.run,
    "alone": alone.run,
    "due": due.run,
    "routing": routing.run,
    "observed": observed.run,
    "shared": due.shared,
    "idle": idle.run,
    "lateness": lateness.run,
    "creation": creation.run,
    "recovery": recovery.run,
    "pruning": pruning.run,
    "sweep": sweep.run,
    "workers": workers.run,
    "pages": pages.run,
    "limits-rabbitmq": partial(limits.run, broker="rabbitmq"),
    "rabbitmq": due.brokers,
    "alone-rabbitmq": partial(alone.run, broker="rabbitmq"),
    "mariadb": partial(elsewhere.run, database="mariadb"),
    "sqlite": partial(elsewhere.run, database="sqlite"),
}
#: Left out, and no failure, where their server is not to be had.
OPTIONAL = ("limits-rabbitmq", "rabbitmq", "alone-rabbitmq", "mariadb")


def main() -> int:
    """Run them; exit code 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="smaller sizes, each once: a few minutes")
    parser.add_argument("--sizes", type=int, metavar="MOST", help="no more tasks than this in any measure")
    parser.add_argument("--only", default=",".join([*MEASURES, "recurrence"]), help="which, separated by commas")
    parser.add_argument("--results", type=Path, help="where the results go (short: nowhere unless it is named)")
    given = parser.parse_args()
    sizes = Sizes.short() if given.short else Sizes()
    sizes = sizes.capped(given.sizes) if given.sizes else sizes
    wanted = given.only.split(",")
    folder = given.results or (None if given.short or given.sizes else HERE / "results")
    world = World()
    figures: list[Figure] = []
    failed = []
    try:
        facts = machine.facts(_plain(world))
        facts |= {f"rivals' {name}": one for name, one in rivals.versions(world.python("celery_beat")).items()}
        for name in (name for name in MEASURES if name in wanted):
            begin = time.monotonic()
            try:
                for one in MEASURES[name](world, sizes):
                    figures.append(one)
                    print(f"{one.work} | {one.size:,.0f} | {one.who} | {one.shown()} {one.unit}", flush=True)
            except (Failed, Missing, AssertionError) as error:
                left_out = isinstance(error, Missing) and name in OPTIONAL
                failed += [] if left_out else [name]
                print(f"{name} {'left out' if left_out else 'failed'}: {error}", file=sys.stderr, flush=True)
            print(f"-- {name}: {time.monotonic() - begin:.0f} s", flush=True)
            if folder:  # after each, so that a run that is stopped keeps what it has
                _keep(folder, facts, figures)
    finally:
        world.close()
    print(_text(facts, figures))
    if "recurrence" in wanted:
        done = subprocess.run([sys.executable, HERE / "recurrence.py"], check=False)
        failed += ["recurrence"] if done.returncode else []
    return bool(failed)


def _keep(folder: Path, facts: dict[str, str], figures: list[Figure]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(_text(facts, figures))
    rows = {"facts": facts, "figures": [one.row() for one in figures]}
    (folder / "results.json").write_text(json.dumps(rows, indent=1))
    plots.draw(figures, folder)


def _plain(world: World) -> object:
    from tests.databases import admin_connection

    return admin_connection(world.database.url)


def _text(facts: dict[str, str], figures: list[Figure]) -> str:
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    tables = [report.table(figures), report.shares(figures), report.ratios(figures), report.growth(figures)]
    tables.append(goals.table(figures))
    return "\n".join(["# What `make bench` measured", "", *lines, "", "\n\n".join(tables), ""])


if __name__ == "__main__":
    sys.exit(main())
