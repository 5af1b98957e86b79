"""The errors of the rules. Each is one line that a person can act on."""

from __future__ import annotations

_SHOWN = 60


class RuleError(ValueError):
    """A schedule rule that cannot be kept.

    `field` names the part of the rule at fault, `token` the piece of text in it (None when it is the whole
    that is wrong), `why` says in one line what is wrong and what would be accepted. `str()` is one line made
    of the three.
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


class SolarUnavailable(RuleError):
    """A solar rule where the library that computes it is not installed."""

    def __init__(self) -> None:
        super().__init__("event", None, "solar schedules need the ephem library: pip install 'onebeat[solar]'")

    def __reduce__(self) -> tuple[type[SolarUnavailable], tuple[()]]:
        return SolarUnavailable, ()


class UnknownTask(LookupError):
    """No task, or no task with the tag, is named so. The text lists names that are near."""

    def __init__(self, name: str, near: list[str]) -> None:
        self.name = name
        self.near = near
        super().__init__(name, near)

    def __str__(self) -> str:
        hint = f"did you mean {', '.join(map(repr, self.near))}?" if self.near else "no name is near it"
        return f"there is no task {self.name!r}: {hint}"


class KeyTaken(ValueError):
    """`once(..., if_exists="fail")` with a key that is taken; `state` says what became of the task that has it."""

    def __init__(self, key: str, state: str) -> None:
        self.key = key
        self.state = state
        super().__init__(key, state)

    def __str__(self) -> str:
        return f"key: {self.key!r} is taken by a task that is {self.state}"


class UnknownApp(LookupError):
    """No Celery app is found under the name that `--app` gives. Name it as `module:attribute`."""
