"""What goes wrong in a cell: one function for each kind of fault."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests import servers, services
from tests.proof.cell import LEASE, LIMIT, Cell
from tests.proof.history import Trouble
from tests.proof.simulation.crons import CHANGES

#: Our own, so that they can be stopped and started.
SERVERS: dict[str, servers.Server] = {}
POINTS = ("claimed", "published", "settled")
#: How long things are away, in seconds; longer than the lease, and than schedulers count as away.
AWAY_FOR = 10.0
#: How long before a change of the clocks a cell begins.
_BEFORE = timedelta(seconds=25)


@dataclass(frozen=True)
class Script:
    """One kind of fault."""

    name: str
    run: Callable[[Cell], None]
    #: What it needs of the cell: "database" or "broker" behind a proxy, or "servers" of its own.
    needs: str = ""
    #: What the first schedulers are told.
    orders: tuple[dict[str, Any], ...] = ()
    #: Where the database's clock begins; None: now.
    at: datetime | None = None
    #: Databases that can have it.
    on: tuple[str, ...] = ("postgresql", "mariadb", "sqlite")
    crons: bool = False
    #: The worker stands still meanwhile; see `Cell`.
    worker_waits: bool = False

    def shift(self) -> timedelta:
        return timedelta(0) if self.at is None else self.at - _BEFORE - datetime.now(UTC)


def rest(seconds: float) -> None:
    """How long a fault lasts, or the peace between two."""
    threading.Event().wait(seconds)


def killed_at_points(cell: Cell) -> None:
    """SIGKILL at each named step, one after the other."""
    for following in (*POINTS[1:], None):
        # The first that is published holds what nobody sent meanwhile: one-offs too, of which copies come in any case.
        turn = 1 if following == "published" else 3
        cell.dies(0, {"point": following, "turn": turn} if following else {})


def killed_at_random(cell: Cell) -> None:
    for _ in range(4):
        rest(cell.rng.uniform(0.3, 2.0))
        number = cell.rng.randrange(len(cell.schedulers))
        cell.dies(number)


def suspended(cell: Cell) -> None:
    """SIGSTOP for longer than the lease, twice."""
    for _ in range(2):
        rest(cell.rng.uniform(0.5, 1.5))
        with cell.trouble(Trouble.SUSPEND, "s0"):
            cell.schedulers[0].send_signal(signal.SIGSTOP)
            rest(LEASE + 2)
            cell.schedulers[0].send_signal(signal.SIGCONT)
            rest(0.5)


def database_away(cell: Cell) -> None:
    """Connections dropped and refused."""
    assert cell.database is not None
    rest(2)
    with cell.trouble(Trouble.DATABASE):
        cell.database.down()
        rest(AWAY_FOR)
        cell.database.up()
        rest(2)


def commit_lost(cell: Cell) -> None:
    """Replies swallowed for a moment, then the connection cut: what was asked has happened, and nobody was told."""
    assert cell.database is not None
    for _ in range(5):
        rest(cell.rng.uniform(0.5, 1.5))
        with cell.trouble(Trouble.COMMIT):
            cell.database.stall(replies_only=True)
            rest(cell.rng.uniform(0.05, 0.6))
            cell.database.cut()
            cell.database.up()
            rest(1)


def database_slow(cell: Cell) -> None:
    """Silent for a while, then everything is answered."""
    assert cell.database is not None
    for _ in range(3):
        rest(1)
        with cell.trouble(Trouble.SUSPEND):
            cell.database.stall()
            rest(1.5)
            cell.database.up()
            rest(0.5)


def broker_away(cell: Cell) -> None:
    assert cell.broker is not None
    rest(2)
    with cell.trouble(Trouble.BROKER):
        cell.broker.down()
        rest(AWAY_FOR)
        cell.broker.up()
        rest(2)


def broker_cut(cell: Cell) -> None:
    """In the middle of messages, again and again."""
    assert cell.broker is not None
    for _ in range(4):
        rest(0.5)
        with cell.trouble(Trouble.BROKER):
            cell.broker.cut_after(cell.rng.randint(500, 6000))
            rest(2)
            cell.broker.up()
            rest(0.5)


def calm(cell: Cell) -> None:
    """Nothing but the clocks is wrong."""
    rest(6)


def over_the_change(cell: Cell) -> None:
    """A scheduler is killed just before the clocks change, and all is well after it."""
    cell.dies(len(cell.schedulers) - 1)
    left = cell.made["latest"][0]
    change = min((one for one in CHANGES if one > datetime.fromisoformat(left)), default=cell.now())
    rest(min(LIMIT, max(0.0, (change - cell.now()).total_seconds()) + 3))


def restarted(which: str) -> Callable[[Cell], None]:
    """A server stops in good order and comes back with its data."""

    def run(cell: Cell) -> None:
        name = cell.fleet.place.database if which == "database" else cell.fleet.place.broker
        rest(2)
        with cell.trouble(Trouble.DATABASE if which == "database" else Trouble.BROKER):
            SERVERS[name].stop()
            rest(2)
            SERVERS[name].start(services.probe)
            rest(3)

    return run


SCRIPTS = (
    Script("killed at each point", killed_at_points, orders=({"point": "claimed", "turn": 3},), worker_waits=True),
    Script("killed at random", killed_at_random, worker_waits=True),
    Script("suspended past the lease", suspended, worker_waits=True),
    Script("COMMIT reply lost", commit_lost, "database", on=("postgresql", "mariadb"), worker_waits=True),
    Script("database silent", database_slow, "database", on=("postgresql", "mariadb")),
    Script("database away", database_away, "database", on=("postgresql", "mariadb")),
    Script("database restarted", restarted("database"), "servers", on=("postgresql", "mariadb")),
    Script("broker cut in a message", broker_cut, "broker", worker_waits=True),
    Script("broker away", broker_away, "broker"),
    Script("broker restarted", restarted("broker"), "servers"),
    Script("clocks 60 s off", calm, orders=({"skew": 60}, {"skew": -60}), on=("postgresql", "mariadb")),
    Script("clocks go forward", over_the_change, at=CHANGES[0], crons=True),
    Script("clocks go back", over_the_change, at=CHANGES[1], crons=True),
)
