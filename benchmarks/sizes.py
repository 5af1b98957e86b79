"""How large the work is: the full run, and a short one of a few minutes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """Sizes of all measures. `rival_*`: what the others are asked to do, since their cost grows with it."""

    runs: int = 3
    due: tuple[int, ...] = (1_000, 10_000, 100_000)
    rival_due: tuple[int, ...] = (1_000, 10_000)
    rival_seconds: float = 60.0
    idle: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    rival_idle: tuple[int, ...] = (1_000, 100_000)
    lateness: tuple[int, ...] = (100, 1_000)
    lateness_seconds: float = 10.0
    shared: int = 20_000
    limit: int = 5_000

    @classmethod
    def short(cls) -> Sizes:
        """The same work, smaller and fewer times."""
        return cls(
            runs=3,
            due=(1_000, 10_000),
            rival_due=(1_000,),
            rival_seconds=10.0,
            idle=(1_000, 100_000),
            rival_idle=(1_000, 10_000),
            lateness=(100, 1_000),
            lateness_seconds=4.0,
            shared=10_000,
            limit=2_000,
        )

    def capped(self, most: int) -> Sizes:
        """No more tasks than this anywhere."""
        return Sizes(
            **{
                **vars(self),
                **{
                    name: tuple(size for size in getattr(self, name) if size <= most) or (most,)
                    for name in ("due", "rival_due", "idle", "rival_idle")
                },
                "shared": min(self.shared, most),
            }
        )
