"""A key and the name of the row that has it.

A key means its bytes. A database may take two texts for one, by letters' case, accents or spaces at the end (MySQL,
MariaDB), and the old table's names are unique by that rule. There the second of two such keys gets a row with a short
suffix, computed from the key alone: whoever asks for the key looks for, and inserts, the same two names.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

#: As long as the column of a task's name.
LONGEST = 200
_MARK = " ~"


def suffixed(key: str) -> str:
    """The name of a key's row where another key's row stands in the way of its own."""
    tail = _MARK + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return key[: LONGEST - len(tail)] + tail


def has(name: str, key: str) -> bool:
    """Whether a row of this name is the key's."""
    return name == key or (may_be_suffixed(name) and name == suffixed(key))


def may_be_suffixed(name: str) -> bool:
    """Whether a row of this name may be that of another key."""
    return _MARK in name


def names(keys: Iterable[str]) -> list[str]:
    """Both names that the rows of these keys may have."""
    return [name for key in keys for name in (key, suffixed(key))]
