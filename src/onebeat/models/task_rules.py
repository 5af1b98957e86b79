"""What a task must hold, asked by `full_clean`, `save` and the queryset's bulk ways alike. One place for each rule.

What gets past them all the same, by raw SQL, is quarantined by the engine.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any, Protocol

from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Model, Q
from django.db.models.base import ModelState

from onebeat.core.headers import problem

SCHEDULES = ("interval", "crontab", "solar", "clocked")
JSON_FIELDS = {"args": list, "kwargs": dict, "headers": dict}

_KINDS = {list: "list, for example [1, 2]", dict: 'object, for example {"full": true}'}
_NONE = "Choose a schedule: one of interval, crontab, solar or clocked."
_SEVERAL = "Only one of interval, crontab, solar and clocked may be set; empty the others."
_ONE_OFF = "A clocked task runs once: set one_off to True."
_EXPIRES = "Set expires or expire_seconds, not both."


class TaskRow(Protocol):
    """What the rules ask of a task's object. A protocol, since the model itself asks the rules."""

    @property
    def pk(self) -> object: ...
    @property
    def headers(self) -> str: ...
    @property
    def one_off(self) -> bool: ...
    @property
    def expires(self) -> datetime | None: ...
    @property
    def expire_seconds(self) -> int | None: ...
    @property
    def _state(self) -> ModelState: ...
    @property
    def _meta(self) -> Any: ...
    def schedule_errors(self) -> dict[str, str]: ...


def check_json(name: str, text: Any) -> None:
    """Raise `ValidationError` unless `text` is the JSON that the field `name` must hold: what `JSON_FIELDS` says,
    else an object. Empty text means the default.
    """
    kind = JSON_FIELDS.get(name, dict)
    if text == "":
        return
    try:
        value = json.loads(text, parse_constant=_no_json)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"{name} must be a JSON {_KINDS[kind]}; this is not JSON: {error}") from error
    if not isinstance(value, kind):
        raise ValidationError(f"{name} must be a JSON {_KINDS[kind]}; this is {text}")


def check_headers(text: Any, kept: Any = None) -> None:
    """Raise `ValidationError` for headers, which are JSON already, that `core.headers.problem` refuses. `kept`: those
    of the row as it is stored.
    """
    if why := problem(json.loads(text or "{}"), json.loads(kept) if kept else None):
        raise ValidationError(why)


def _stored_headers(task: TaskRow) -> str:
    """The headers of the task's row, if they are JSON."""
    model: type[Model] = task._meta.concrete_model
    using = task._state.db or router.db_for_write(model, instance=task)
    text = model._base_manager.using(using).filter(pk=task.pk).values_list("headers", flat=True).first()
    try:
        check_json("headers", text or "")
    except ValidationError:
        return ""
    return str(text or "")


def _no_json(word: str) -> None:
    # Python reads NaN and Infinity; workers in other languages do not.
    raise ValueError(f"{word} is no JSON number")


def check_task(task: TaskRow, touched: Collection[str] | None = None) -> None:
    """Raise `ValidationError` on each field that breaks a rule; `touched`: only rules about these fields (None:
    all).
    """

    def asked(*names: str) -> bool:
        return touched is None or any(name in touched or f"{name}_id" in touched for name in names)

    errors: dict[str, object] = {}
    for name in JSON_FIELDS:
        if asked(name) and not hasattr(getattr(task, name), "resolve_expression"):
            try:
                field: Any = task._meta.get_field(name)
                setattr(task, name, field.to_python(getattr(task, name)))
                check_json(name, getattr(task, name))
                if name == "headers" and problem(json.loads(task.headers or "{}")):
                    check_headers(task.headers, None if task._state.adding else _stored_headers(task))
            except ValidationError as error:
                errors[name] = error
    for name in ("name", "task"):
        value = getattr(task, name)
        if name == "task" and callable(value) and isinstance(getattr(value, "name", None), str):
            value = value.name  # a Celery task in place of its name
            setattr(task, name, value)
        longest = task._meta.get_field(name).max_length
        if asked(name) and isinstance(value, str) and longest is not None and len(value) > longest:
            errors[name] = f"{name} has {len(value)} characters; at most {longest} are possible."
    if asked(*SCHEDULES, "one_off"):
        errors.update(task.schedule_errors())
    if asked("expires", "expire_seconds") and task.expires is not None and task.expire_seconds is not None:
        errors["expire_seconds"] = _EXPIRES
    if errors:
        raise ValidationError(errors)


def schedule_errors(task: TaskRow) -> dict[str, str]:
    """What is wrong with a task's choice of schedule, by field."""
    # The object counts too: an unsaved schedule has no key yet.
    kinds = [name for name in SCHEDULES if chosen(task, name)]
    if not kinds:
        return {"interval": _NONE}
    if len(kinds) > 1:
        return dict.fromkeys(kinds, _SEVERAL)
    if kinds == ["clocked"] and not task.one_off:
        return {"one_off": _ONE_OFF}
    return {}


def chosen(task: TaskRow, name: str) -> bool:
    """Whether the task points at a schedule of this kind."""
    return getattr(task, f"{name}_id") is not None or task._state.fields_cache.get(name) is not None


def broken_by_update(values: dict[str, object]) -> list[tuple[Q, dict[str, str]]]:
    """The rows that `update(**values)` would leave without exactly one schedule, clocked and not one-off, or with two
    ends: conditions on the rows as they are now, each with the errors to raise if a row meets it.
    """
    found: list[tuple[Q, dict[str, str]]] = []
    given = {name: _given(values, name) for name in SCHEDULES if {name, f"{name}_id"} & values.keys()}
    new = [name for name, value in given.items() if value is not None]
    kept = _any_of([name for name in SCHEDULES if name not in given])
    if len(new) > 1:
        found.append((Q(), dict.fromkeys(new, _SEVERAL)))
    elif new and len(given) < len(SCHEDULES):
        found.append((kept, {new[0]: _SEVERAL}))
    elif given and not new:
        found.append((~kept if len(given) < len(SCHEDULES) else Q(), {next(iter(given)): _NONE}))
    if values.get("one_off") is False and ("clocked" not in given or "clocked" in new):
        found.append((Q() if "clocked" in new else Q(clocked__isnull=False), {"one_off": _ONE_OFF}))
    ends = [name for name in ("expires", "expire_seconds") if values.get(name) is not None]
    if ends:
        both = Q()
        for name in {"expires", "expire_seconds"} - values.keys():
            both &= Q(**{f"{name}__isnull": False})
        if len(ends) == 2 or both:
            found.append((both, {"expire_seconds": _EXPIRES}))
    return found


def _given(values: dict[str, object], name: str) -> object:
    return values.get(name, values.get(f"{name}_id"))


def _any_of(names: list[str]) -> Q:
    found = Q()
    for name in names:
        found |= Q(**{f"{name}__isnull": False})
    return found
