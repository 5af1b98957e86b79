"""What `onebeat import` prints: a line for each row as soon as it is known, and the sum. No row is kept in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from onebeat.core import clock
from onebeat.importing.carry import Result

Write = Callable[[str], object]

_SECONDS_BETWEEN_LINES = 5.0
_SIGNS = {"new": "+", "replaced": "~", "same": "=", "kept": "=", "refused": "!"}
_WOULD = {
    "new": "would be made",
    "replaced": "would be replaced",
    "same": "are here already",
    "kept": "are here otherwise and would be kept",
    "refused": "cannot be carried",
}
_DONE = {**_WOULD, "new": "made", "replaced": "replaced", "kept": "are here otherwise and were kept"}


def watched(results: Iterable[Result], total: int, say: Write) -> Iterator[Result]:
    """The same results; every few seconds `say` gets how far they are."""
    last = clock.monotonic()
    for number, result in enumerate(results, start=1):
        yield result
        if clock.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = clock.monotonic()
            say(f"onebeat import: {number:,} of {total:,}")


def as_text(
    source: str, warnings: list[str], results: Iterable[Result], applied: bool, detail: int, write: Write
) -> Counter[str]:
    """Lines for people; returns how many rows had which outcome.

    `detail`: 0 or 1 to name what a person should look at (and in a dry run what would be written), 2 to
    name every row.
    """
    write(f"From {source}")
    for warning in warnings:
        write(f"  ! {warning}")
    counts: Counter[str] = Counter()
    for one in results:
        counts[one.outcome] += 1
        plain = one.outcome == "same" or (applied and one.outcome == "new" and not one.notes)
        if detail > plain:
            write("".join(_line(one, applied)))
    words = _DONE if applied else _WOULD
    parts = [f"{counts[name]:,} {words[name]}" for name in words if counts[name]]
    write(f"{'; '.join(parts) or 'no tasks there'}.")
    if not applied and counts["new"] + counts["replaced"]:
        write("Nothing was written. Run it again with --apply to do it.")
    if counts["kept"]:
        write("With --replace, those that are here otherwise become as they are there.")
    return counts


def _line(one: Result, applied: bool) -> Iterator[str]:
    yield f"  {_SIGNS[one.outcome]} {one.name if one.outcome in ('kept', 'refused') else one.what}"
    if one.outcome == "refused":
        yield f": {one.why}"
    elif one.why:
        word = "kept" if one.outcome == "kept" else "replaced" if applied else "would be replaced"
        yield f": {word}; {one.why}" if one.outcome == "kept" else f" ({word}; {one.why})"
    elif one.outcome == "same":
        yield " (is here already)"
    for note in one.notes:
        yield f"\n      {note}"


def as_json(
    source: str, warnings: list[str], results: Iterable[Result], applied: bool, detail: int, write: Write
) -> Counter[str]:
    """One JSON object, written row by row, with every row in it; returns how many rows had which outcome."""
    head = json.dumps({"source": source, "applied": applied, "warnings": warnings})
    write(f'{head[:-1]}, "rows": [')
    counts: Counter[str] = Counter()
    error: Exception | None = None
    try:
        for one in results:
            row = {"name": one.name, "outcome": one.outcome, "why": one.why, "notes": list(one.notes)}
            write(f"{',' if counts else ''}{json.dumps(row)}")
            counts[one.outcome] += 1
    except Exception as stopped:
        error = stopped
    finally:
        tail = json.dumps({"counts": dict(counts), "error": str(error) if error else None})
        write(f"], {tail[1:]}")
    if error:
        raise error
    return counts
