"""What was measured, as rows: the median of several runs with the lowest and the highest."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One cell of the table."""

    #: What is measured, such as "due at once".
    work: str
    #: The number of tasks, or the rate, as a number; 0 where there is none.
    size: float
    #: Who did it: a contestant, or a limit of the machine.
    who: str
    unit: str
    values: tuple[float, ...]
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def shown(self) -> str:
        """The median, and the spread where there was more than one run."""
        text = number(self.median)
        if len(self.values) > 1:
            text += f" ({number(min(self.values))}-{number(max(self.values))})"
        return text + (f" {self.note}" if self.note else "")

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "median": self.median}


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def find(figures: Sequence[Figure], work: str, size: float, who: str) -> Figure | None:
    """The figure of this cell, if it was measured."""
    return next((one for one in figures if (one.work, one.size, one.who) == (work, size, who)), None)


def ratio(over: Figure | None, under: Figure | None) -> float | None:
    """How many times one is the other."""
    return over.median / under.median if over and under and under.median else None
