"""What onebeat raises, under one base. Each is one line that a person can act on.

Errors of the database, of Celery and of Django keep their own classes.
"""

from __future__ import annotations

_SHOWN = 60


class OnebeatError(Exception):
    """The base of every error of onebeat's own."""


class InvalidSchedule(OnebeatError, ValueError):
    """A schedule's rule cannot be read, or can never match. Correct the named part of it.

    `field` is the part of the rule at fault, `token` the piece of text in it (None where the whole is wrong), `why`
    one line that says what is wrong and what is accepted. `str()` is made of the three.
    """

    def __init__(self, field: str, token: object, why: str) -> None:
        self.field = field
        self.token = None if token is None else str(token)
        self.why = " ".join(why.split())
        super().__init__(field, token, why)

    def __str__(self) -> str:
        if self.token is None:
            return f"{self.field}: {self.why}"
        shown = self.token if len(self.token) <= _SHOWN else self.token[: _SHOWN - 3] + "..."
        return f"{self.field}: {shown!r} is not accepted: {self.why}"


class SolarUnavailable(InvalidSchedule):
    """A solar schedule was used where the library that computes it is missing. Run `pip install 'onebeat[solar]'`."""

    def __init__(self) -> None:
        super().__init__("event", None, "solar schedules need the ephem library: pip install 'onebeat[solar]'")

    def __reduce__(self) -> tuple[type[SolarUnavailable], tuple[()]]:
        return SolarUnavailable, ()


class Unschedulable(OnebeatError, ValueError):
    """A stored task cannot be planned or sent as it is. The text names the field; correct it and save the task.

    The text holds no value of an argument, since it is stored as the reason of the task's quarantine and logged.
    """


class InvalidArgument(OnebeatError, ValueError, TypeError):
    """A verb or a declaration was called with a value that it cannot use. The text begins with the argument's name.

    It is both a ValueError and a TypeError, so that either `except` catches a wrong value and a wrong type.
    """


class InvalidMessage(InvalidArgument):
    """A message cannot be stored or sent with this argument or option. The text begins with its name."""


class NotJSON(InvalidMessage):
    """JSON cannot hold a part of the message. Pass what the text proposes, for example a row's pk.

    `path` says where the part is, as Python would reach it: `kwargs["order"]["items"][2]`; `why` says what is wrong.
    """

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(path, why)

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class NoSuchTime(InvalidArgument):
    """The task's schedule does not name this instant. The text lists the times before and after it."""


class UnknownTask(OnebeatError, LookupError):
    """No task has this name, or no task has this tag. The text lists similar names.

    `name` is what was asked for, `near` the similar names that exist.
    """

    def __init__(self, name: str, near: list[str]) -> None:
        self.name = name
        self.near = near
        super().__init__(name, near)

    def __str__(self) -> str:
        hint = f"did you mean {', '.join(map(repr, self.near))}?" if self.near else "no name is near it"
        return f"there is no task {self.name!r}: {hint}"


class KeyTaken(OnebeatError, ValueError):
    """`once(..., if_exists="fail")` was called with a key that a task has. Use another key, or another `if_exists`.

    `state` is what has become of that task, one of `onebeat.OnceState`.
    """

    def __init__(self, key: str, state: str) -> None:
        self.key = key
        self.state = state
        super().__init__(key, state)

    def __str__(self) -> str:
        return f"key: {self.key!r} is taken by a task that is {self.state}"


class UnknownApp(OnebeatError, LookupError):
    """No Celery app was found under the name that `--app` gives. Name it as `module:attribute`."""


class SourceUnavailable(OnebeatError):
    """The database or Redis that tasks are imported from stopped answering. Run the import again: it continues."""
