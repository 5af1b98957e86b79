"""Real faults on real processes: `make chaos` runs the matrix and prints a table; it fails if a promise broke.

Each cell has recurring and one-off tasks, people who edit, one guarded worker, and ends in the history checker.

    python -m tests.proof.chaos [--only WORDS] [--schedulers 1,3,8] [--places postgresql-redis,...] [--together 3]
        [--part 1/2]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import services
from tests.engine.fleet import Fleet, Place
from tests.processes import spawning
from tests.proof.cell import Cell, Verdict
from tests.proof.scripts import SCRIPTS, SERVERS, Script
from tests.proxy import Proxy
from tests.scratch import Post, Scratch, Templates

PLACES = (
    ("postgresql", "redis"), ("mariadb", "rabbitmq"), ("sqlite", "redis"),
    ("postgresql", "rabbitmq"), ("mariadb", "redis"), ("sqlite", "rabbitmq"),
)  # fmt: skip
ONE_OFFS, OVER = 60, 12.0
HEAD = (
    "place",
    "fault",
    "faults",
    "sent",
    "lost",
    "copies",
    "run twice",
    "unexplained",
    "longest silence, s",
    "stalls",
)
Spawn = Callable[..., subprocess.Popen[bytes]]
#: More schedulers at once would be a test of the machine.
MOST = 12
_FAILED = (Exception, pytest.fail.Exception)


@contextmanager
def opened(script: Script, place: Place, templates: Templates, spawn: Spawn, folder: Path, seed: int) -> Iterator[Cell]:
    """A cell with all it needs, not begun."""
    kinds = {each.name: each for each in services.databases()}
    brokers = {each.name: each for each in services.brokers()}
    with ExitStack() as stack:
        kind = kinds[place.database]
        scratch = stack.enter_context(Scratch.open(kind, templates.of(kind)))
        post = stack.enter_context(Post.open(brokers[place.broker]))
        fleet = Fleet(place, scratch, post, spawn)
        rest: list[dict[str, Any]] = [{}] * place.schedulers
        cell = Cell(
            fleet,
            folder,
            script.name,
            [*script.orders, *rest][: place.schedulers],
            script.shift(),
            stack.enter_context(Proxy(kind.url)) if script.needs == "database" else None,
            stack.enter_context(Proxy(post.url)) if script.needs == "broker" else None,
            script.worker_waits,
            rng=Random(seed),
        )
        stack.callback(cell.close)
        yield cell


def side_by_side(
    todo: Sequence[tuple[Script, Place]], templates: Templates, spawn: Spawn, folder: Path, *, seed: int = 1
) -> Iterator[Verdict]:
    """Run some cells at once: each mostly waits. The faults come one after the other, the work goes on in all."""
    with ExitStack() as stack:
        found = []
        for number, (script, place) in enumerate(todo):
            own = folder / str(number)
            own.mkdir()
            try:
                cell = stack.enter_context(opened(script, place, templates, spawn, own, seed + number))
                cell.begin()
            except _FAILED as error:
                yield _broken(place, script, error)
            else:
                found.append((script, cell))
        if found:
            pool = stack.enter_context(ThreadPoolExecutor(len(found)))
            yield from pool.map(_one, *zip(*found, strict=True))


def _one(script: Script, cell: Cell) -> Verdict:
    try:
        cell.give_work(ONE_OFFS, OVER, crons=script.crons)
        script.run(cell)
        cell.finish()
        return cell.verdict()
    except _FAILED as error:
        return _broken(cell.fleet.place, script, error)
    finally:
        cell.close()


def _broken(place: Place, script: Script, error: BaseException) -> Verdict:
    """What could not be carried out has not kept anything; the other cells go on."""
    return Verdict(str(place), script.name, 0, 0, 0, 0, 0, 0, 0.0, 0, [f"{error!r}"])


def own_servers() -> None:
    """Start a server of each kind; what Redis has accepted survives its restart."""
    for name, make in services.THROWAWAY.items():
        server = make()
        if name == "redis":
            server.command += ["--appendonly", "yes", "--appendfsync", "always"]
        server.start(services.probe)
        SERVERS[name] = server
        os.environ[services.variable(name)] = server.url


def line(values: Iterable[Any]) -> str:
    return "| " + " | ".join(f"{one:.1f}" if isinstance(one, float) else str(one) for one in values) + " |"


def tell(verdict: Verdict) -> None:
    """A row of the table, and what is wrong with it."""
    print(line(astuple(verdict)[: len(HEAD)]), *(f"    {one}" for one in verdict.findings[:5]), sep="\n", flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="run the faults whose name has one of these, separated by commas")
    parser.add_argument("--schedulers", default="1,3,8")
    parser.add_argument("--places", default=",".join("-".join(each) for each in PLACES))
    parser.add_argument("--together", type=int, default=3, help="how many cells run side by side")
    parser.add_argument("--part", default="1/1", help="run this part of the cells, so that several can run at once")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    own_servers()
    places = [tuple(each.split("-")) for each in given.places.split(",")]
    numbers = [int(each) for each in given.schedulers.split(",")]
    part, of = map(int, given.part.split("/"))
    bad, templates = 0, Templates()
    print(line(HEAD), line("---" for _ in HEAD), sep="\n", flush=True)
    try:
        for script in SCRIPTS:
            if not any(words in script.name for words in given.only.split(",")):
                continue
            todo = [(script, Place(*each, number)) for number in numbers for each in places if each[0] in script.on]
            for some in _together(todo[part - 1 :: of], given.together):
                bad += _part(some, templates, given.seed)
    finally:
        templates.drop()
        for server in SERVERS.values():
            server.close()
    print(f"{bad} cells broke a promise" if bad else "every promise was kept", flush=True)
    return bool(bad)


def _together(todo: Sequence[tuple[Script, Place]], most: int) -> Iterator[list[tuple[Script, Place]]]:
    """Cells that can run side by side."""
    some: list[tuple[Script, Place]] = []
    for script, place in todo:
        processes = sum(each.schedulers for _, each in some) + place.schedulers
        # A server that is restarted is everybody's.
        if some and (script.needs == "servers" or len(some) >= most or processes > MOST):
            yield some
            some = []
        some.append((script, place))
    if some:
        yield some


def _part(part: Sequence[tuple[Script, Place]], templates: Templates, seed: int) -> int:
    bad = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onebeat-chaos-") as folder, spawning(Path(folder)) as spawn:
        try:
            for verdict in side_by_side(part, templates, spawn, Path(folder), seed=seed):
                tell(verdict)
                bad += verdict.broken
        finally:
            if keep := os.environ.get("ONEBEAT_CHAOS_LOGS"):
                shutil.copytree(folder, Path(keep) / Path(folder).name)
    print(f"({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
