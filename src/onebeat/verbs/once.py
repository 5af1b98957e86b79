"""Follow-ups: a task that runs once, under a key that makes asking twice harmless."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Required, Unpack, get_args

from django.db import models

from onebeat.core.message_request import CeleryTask, MessageOptions, MessageRequest, message_request
from onebeat.db import database_clock, schema, transactions
from onebeat.errors import InvalidArgument, KeyTaken, NotJSON
from onebeat.models import PeriodicTask
from onebeat.queries import task_lookup
from onebeat.verbs import once_changes, once_rows, once_statement, records
from onebeat.verbs.base import alias_of, do, instant, who_is
from onebeat.verbs.links import link_to
from onebeat.verbs.once_changes import Found, OnceState

logger = logging.getLogger("onebeat")

IfExists = Literal["keep", "reschedule", "renew", "fail"]


@dataclass(frozen=True, slots=True)
class Once:
    """What `once` found or made."""

    task: PeriodicTask
    #: Whether this call made it: True for one of any number of callers.
    created: bool
    #: Whether this call gave it another instant, or armed it again after it was cancelled.
    rescheduled: bool
    #: How it stood when this call looked: "waiting" if the run is still to come.
    state: OnceState
    #: The instant at which it runs or ran (UTC).
    at: datetime
    #: The key, which is the task's name unless that has a suffix (see `onebeat.core.keys`).
    key: str


class OnceItem(MessageOptions, total=False):
    """One item of `once_many`: the arguments of `once` by name."""

    key: Required[str]
    at: Required[datetime | timedelta]
    task: Required[str | CeleryTask]
    args: Sequence[object]
    kwargs: Mapping[str, object]
    for_: models.Model
    tags: Sequence[str]


def once(
    key: str,
    *,
    at: datetime | timedelta,
    task: str | CeleryTask,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    if_exists: IfExists = "keep",
    for_: models.Model | None = None,
    tags: Sequence[str] = (),
    by: object = None,
    using: str | None = None,
    **options: Unpack[MessageOptions],
) -> Once:
    """Run a Celery task once, at an instant. The key is the name of the row: one row, however many ask for it at once.

    `at`: an aware datetime, or a timedelta from the database's present instant. `task`: the Celery task or its name.
    `args`, `kwargs`: what JSON can hold. `options`: those of `apply_async`, see `MessageOptions`. `for_`: a row of a
    model that is `linked`: deleting it deletes this task in the same commit. `tags`: words for `pause(Tag(...))`.

    A key means its bytes, on every database. If it is taken (it stays so after the run and after `cancel`, until the
    row is pruned), `if_exists` decides: "keep" changes nothing, "reschedule" gives the task this instant if it has not
    run yet and was not cancelled, "renew" does the same and arms a cancelled one again (`.rescheduled` says whether
    either was done), "fail" raises `KeyTaken`. A call that finds a cancelled task and leaves it so is logged.

    It joins the caller's transaction: if that rolls back nothing is sent and the key is free. Losing a race is no
    error; inside your transaction the database's own retryable errors reach you. No `post_save` is sent. Raises
    `ValueError` or `TypeError` naming the argument at fault.
    """
    _check(if_exists)
    one = message_request(key, at, task, args, kwargs, options, tags=tags, link=link_to(for_))
    alias = alias_of(using)
    schema.require(alias)
    joins = transactions.in_transaction(alias)
    if once_statement.possible(alias, one):
        answer = _in_one_statement(alias, one, if_exists, joins)
        if answer is not None:
            return answer
    return do(alias, lambda alias: _once(alias, [one], if_exists, who_is(by), joins)[0])


def once_many(
    items: Iterable[OnceItem],
    *,
    if_exists: IfExists = "keep",
    by: object = None,
    using: str | None = None,
) -> list[Once]:
    """`once` for many, each a dict of its arguments, in few statements and one transaction: all of them or none.

    The answers are in the order of the items. Raises as `once`, naming the item.
    """
    _check(if_exists)
    found = []
    for number, item in enumerate(items):
        options: dict[str, Any] = dict(item)
        try:
            given = {name: options.pop(name) for name in ("key", "at", "task")}
            more = {name: options.pop(name, default) for name, default in (("args", ()), ("kwargs", None))}
            tags, link = options.pop("tags", ()), link_to(options.pop("for_", None))
            found.append(message_request(**given, **more, options=options, tags=tags, link=link))
        except KeyError as error:
            raise InvalidArgument(f"items[{number}]: {error.args[0]} is missing") from None
        except NotJSON as error:
            raise NotJSON(f"items[{number}]: {error.path}", error.why) from error
        except InvalidArgument as error:
            raise type(error)(f"items[{number}]: {error}") from error
    hint = transactions.in_transaction(alias_of(using))
    return do(using, lambda alias: _once(alias, found, if_exists, who_is(by), hint))


def cancel(key: str, why: str = "", *, by: object = None, using: str | None = None) -> bool:
    """Take back a task that was to run once. Returns whether it came in time: then it will not run.

    False: it has run or is being sent, or there is no task of this name. The key stays taken. Raises `InvalidArgument`
    for a task that runs again and again.
    """

    def work(alias: str) -> bool:
        now, number = database_clock.now(alias), once_changes.key_of(alias, key)
        found = None if number is None else once_changes.hold(alias, number)
        if found is None:
            return False
        who = who_is(by)
        detail = ": ".join(filter(None, [f"cancelled by {who}" if who else "cancelled", why]))
        done = once_changes.cancel(alias, found, detail, now)
        if done and found.state != "cancelled":
            records.record(alias, "cancel", {found.task.pk: key}, who, why, found.at.isoformat(), now)
        return done

    return do(using, work)


def _check(if_exists: str) -> None:
    if if_exists not in get_args(IfExists):
        raise InvalidArgument(f'if_exists: "keep", "reschedule", "renew" or "fail" is needed, not {if_exists!r}')


def _in_one_statement(using: str, one: MessageRequest, if_exists: IfExists, joins: bool) -> Once | None:
    """None: the task is there, and what becomes of it takes a transaction, or it is gone again."""
    if isinstance(one.at, datetime):
        _check_end(one, one.at)
    found = transactions.retrying(using, lambda: once_statement.make(using, one, joins=joins))
    if found.task is not None:
        return Once(found.task, True, False, "waiting", found.at, one.key)
    if if_exists in ("reschedule", "renew"):
        return None
    task = task_lookup.tasks(using).filter(pk=found.pk).first()
    if task is None:
        return None
    return _exists(using, one.key, once_changes.look(using, [task])[0], found.at, if_exists, "", found.now)


def _check_end(one: MessageRequest, at: datetime) -> None:
    ends = one.columns.get("expires")
    if ends is not None and ends < at:
        raise InvalidArgument(f"expires: {ends.isoformat()} is before the run of {one.key!r} at {at.isoformat()}")


def _once(using: str, items: Sequence[MessageRequest], if_exists: IfExists, by: str, hint: bool) -> list[Once]:
    now = database_clock.now(using)
    at = [instant("at", one.at, now) for one in items]
    asked: dict[str, tuple[MessageRequest, datetime]] = {}
    for one, when in zip(items, at, strict=True):
        _check_end(one, when)
        asked.setdefault(one.key, (one, when))
    made = once_rows.make(using, asked, now, hint=hint)
    others = {one.task.pk: one for one in once_changes.look(using, [task for task, new in made.values() if not new])}
    answers, new_keys = [], {key for key, (_, new) in made.items() if new}
    for one, when in zip(items, at, strict=True):
        task = made[one.key][0]
        if one.key in new_keys:
            new_keys.remove(one.key)
            answers.append(Once(task, True, False, "waiting", when, one.key))
        else:
            found = others.get(task.pk) or once_changes.look(using, [task])[0]
            answers.append(_exists(using, one.key, found, when, if_exists, by, now))
    return answers


def _exists(using: str, key: str, found: Found, at: datetime, if_exists: IfExists, by: str, now: datetime) -> Once:
    if if_exists == "fail":
        raise KeyTaken(key, found.state)
    if if_exists in ("reschedule", "renew"):
        found = once_changes.hold(using, found.task.pk) or found
        if once_changes.reschedule(using, found, at, renew=if_exists == "renew"):
            detail = f"from {found.at.isoformat()} to {at.isoformat()}"
            records.record(using, if_exists, {found.task.pk: key}, by, "", detail, now)
            found.task.refresh_from_db(using=using)
            return Once(found.task, False, True, "waiting", at, key)
    if found.state == "cancelled":
        logger.warning('once(%r) changes nothing: its run was cancelled; if_exists="renew" arms it again', key)
    return Once(found.task, False, False, found.state, found.at, key)
