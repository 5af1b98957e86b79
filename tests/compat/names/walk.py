"""Every public name of a package that is importable as `django_celery_beat`, as JSON: what it is and how it is called.

Run by record_names.py where that is the real one, and imported by test_names.py where it is onebeat's. Needs nothing
but Django set up.
"""

from __future__ import annotations

import inspect
import json
import logging
from functools import partialmethod
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGE = "django_celery_beat"
MODULES = (
    *("", "admin", "apps", "clockedschedule", "models", "querysets", "schedulers", "signals", "tzcrontab", "utils"),
    "validators",
)
#: Not public by their names, and overridden all the same.
HOOKS = {
    *("__init__", "__next__", "__version__", "_default_now", "_disable", "_unpack_fields", "_unpack_options"),
    *("_schedule", "_last_timestamp", "_initial_read", "_heap_invalidated", "_toggle_tasks_activity"),
}


def public(name: str) -> bool:
    return not name.startswith("_") or name in HOOKS


def parameters(function: Any) -> list[list[Any]] | None:
    """[name, kind, whether it has a default] of each parameter; None where that cannot be told."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[one.name, one.kind.name, one.default is not one.empty] for one in found]


def describe(value: Any) -> dict[str, Any]:
    """What a module's or a class's attribute is."""
    if isinstance(value, classmethod | staticmethod):
        return {"is": type(value).__name__, "takes": parameters(value.__func__)}
    if inspect.isfunction(value):
        return {"is": "function", "takes": parameters(value)}
    if inspect.isclass(value):
        return {"is": "class"}
    if isinstance(value, partialmethod):
        return {"is": "callable"}
    if isinstance(value, ModuleType):
        return {"is": "module"}
    if callable(getattr(value, "__get__", None)) and not callable(value):
        return {"is": "attribute"}  # a property, a field, a manager: asked of an instance or of the class
    if isinstance(value, str | int | tuple | list | dict | set):
        return {"is": type(value).__name__}
    return {"is": "callable" if callable(value) else "value"}


def own(value: Any) -> bool:
    """Whether something in a module is the package's own, and not only imported from elsewhere."""
    if isinstance(value, ModuleType):
        return value.__name__.startswith(PACKAGE)
    home = getattr(value, "__module__", None) or getattr(type(value), "__module__", "")
    if isinstance(getattr(value, "__self__", value), logging.Logger):
        return True
    return isinstance(value, str | int | tuple | list) or str(home).startswith(PACKAGE)


def members(kind: type) -> dict[str, Any]:
    """The public members that the package's own classes give to this class."""
    found: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith(PACKAGE):
            found |= {name: describe(value) for name, value in vars(each).items() if public(name)}
            # The fields of a form stand in no attribute.
            found |= {f"base_fields.{name}": {"is": "key"} for name in getattr(each, "declared_fields", ())}
    return found


def walk() -> dict[str, Any]:
    """Every module, name and member of the real package."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name, value in sorted(vars(import_module(f"{PACKAGE}.{module}".rstrip("."))).items()):
            if not public(name) or not own(value) or name == "namedtuple":
                continue
            path = f"{module}.{name}".lstrip(".")
            found[path] = describe(value)
            home = getattr(value, "__module__", "") or ""
            if inspect.isclass(value) and home == f"{PACKAGE}.{module}".rstrip("."):
                found |= {f"{path}.{member}": what for member, what in sorted(members(value).items())}
    return found


if __name__ == "__main__":
    import django

    django.setup()
    print(json.dumps(walk()))
