"""Whether anybody has had a hand in a function of Celery's or of ours: by a patch or by a wrapper.

Python keeps no record of that. What can be told is the module in which a function was written: a wrapper copies the
names of what it wraps, but its globals are those of its own module.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from onebeat.dispatch.celery import observers


def written_in(function: object, *modules: str) -> bool:
    """Whether this is a plain function that one of these modules defines."""
    return type(function) is FunctionType and function.__globals__["__name__"] in modules


def original(function: Any, *modules: str) -> Any:
    """The function that one of these modules defines, if this is it, or is it under the wrapper of an observer that is
    served by us; None if anybody else has had a hand in it.
    """
    while not written_in(function, *modules):
        if not written_in(function, *observers.wrappers()):
            return None
        # What a wrapper calls it keeps in a closure.
        inside = (cell.cell_contents for cell in function.__closure__ or ())
        function = next((one for one in inside if type(one) is FunctionType), None)
    return function
