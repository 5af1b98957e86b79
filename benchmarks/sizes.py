"""How large the work is: the full run, and a short one of a few minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Sizes:
    """Sizes of all measures. `rival_*`: what the others are asked to do, since their cost grows with it."""

    runs: int = 3
    #: What a process may take to come up, in seconds, before the instant at which the work begins.
    lead: float = 6.0
    due: tuple[int, ...] = (1_000, 10_000, 100_000)
    rival_due: tuple[int, ...] = (1_000, 10_000)
    rival_seconds: float = 30.0
    idle: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    rival_idle: tuple[int, ...] = (1_000, 100_000)
    #: Tasks due per second.
    lateness: tuple[int, ...] = (100, 1_000, 5_000)
    #: At which of these rates also while rows are added.
    edited: tuple[int, ...] = (100, 1_000, 5_000)
    lateness_seconds: float = 8.0
    #: How long an idle scheduler is watched.
    rest: float = 5.0
    schedulers: tuple[int, ...] = (1, 2, 4)
    shared: int = 20_000
    limit: int = 5_000
    #: What one step of the engine is given to do alone.
    alone: int = 20_000
    #: Due at once through other exchanges, and without the transport's batches.
    routed: int = 10_000
    once_many: tuple[int, ...] = (1_000, 10_000)
    callers: tuple[int, ...] = (1, 8, 32)
    #: Calls of `once` by all callers together, and the instants that each of them asks `get_or_create` for.
    calls: int = 3_200
    instants: int = 100
    recovery: int = 100_000
    pruning: int = 1_000_000
    pruning_seconds: float = 10.0
    pruning_command: bool = True
    #: Runs of a worker, one task after the other.
    worked: int = 5_000
    sweep: tuple[int, ...] = (1_000, 1_000_000)
    pages: tuple[int, ...] = (1_000, 1_000_000)
    rival_pages: tuple[int, ...] = (100_000,)
    #: Due at once on the other databases, and how many per second.
    elsewhere: int = 5_000
    elsewhere_rate: tuple[int, ...] = (100,)

    @classmethod
    def short(cls) -> Sizes:
        """The same work, smaller and once."""
        return cls(
            runs=1,
            lead=3.0,
            due=(1_000, 10_000),
            rival_due=(1_000,),
            rival_seconds=5.0,
            idle=(1_000, 100_000),
            rival_idle=(1_000, 3_000),
            lateness=(100, 1_000),
            edited=(1_000,),
            lateness_seconds=3.0,
            rest=2.0,
            schedulers=(1, 2),
            shared=5_000,
            limit=2_000,
            alone=5_000,
            routed=1_000,
            callers=(1, 32),
            calls=960,
            instants=50,
            recovery=10_000,
            pruning=400_000,
            pruning_seconds=4.0,
            pruning_command=False,
            worked=1_500,
            sweep=(100_000,),
            pages=(100_000,),
            rival_pages=(1_000,),
            elsewhere=1_000,
            elsewhere_rate=(),
        )

    def capped(self, most: int) -> Sizes:
        """No more tasks than this anywhere."""
        many = ("due", "rival_due", "idle", "rival_idle", "once_many", "sweep", "pages", "rival_pages")
        one = ("shared", "alone", "routed", "recovery", "pruning", "elsewhere", "worked")
        return replace(
            self,
            **{name: tuple(size for size in getattr(self, name) if size <= most) or (most,) for name in many},
            **{name: min(getattr(self, name), most) for name in one},
        )
