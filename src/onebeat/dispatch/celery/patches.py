"""Whether anybody has had a hand in a function of Celery's or of ours: by a patch or by a wrapper.

Python keeps no record of that. What can be told is the module in which a function was written: a wrapper copies the
names of what it wraps, but its globals are those of its own module.
"""

from __future__ import annotations

from types import FunctionType


def written_in(function: object, *modules: str) -> bool:
    """Whether this is a plain function that one of these modules defines."""
    return type(function) is FunctionType and function.__globals__["__name__"] in modules
