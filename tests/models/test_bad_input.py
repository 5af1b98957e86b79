"""What is wrong is refused on every way in, naming the field, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import connection
from django.db.models import F
from django.forms import modelform_factory

from onebeat.models import (
    Change,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
    TaskOptions,
)
from onebeat.models.instants import from_utc


class Unknown:
    """Something that JSON has no words for, with the same name in every process."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


def named_alike(each: object) -> str:
    """The name of a case, the same in every process: a set has no order of its own."""
    return str(sorted(each) if isinstance(each, set) else each)[:40]


pytestmark = pytest.mark.django_db

NEXT_YEAR = from_utc(datetime(2031, 1, 1, tzinfo=UTC))

SCHEDULES: list[tuple[Any, dict[str, Any], dict[str, Any], str]] = [
    (CrontabSchedule, {"day_of_month": "31", "month_of_year": "1"}, {"month_of_year": "2"}, "day_of_month"),
    (CrontabSchedule, {"day_of_month": "31", "month_of_year": "1"}, {"month_of_year": "4,6,9,11"}, "day_of_month"),
    (CrontabSchedule, {"minute": "1"}, {"minute": "60"}, "minute"),
    (CrontabSchedule, {"minute": "1"}, {"minute": ""}, "minute"),
    (CrontabSchedule, {"minute": "1"}, {"minute": "1,"}, "minute"),
    (CrontabSchedule, {"minute": "1"}, {"hour": "1_0"}, "hour"),
    (CrontabSchedule, {"minute": "1"}, {"day_of_week": 8}, "day_of_week"),
    (CrontabSchedule, {"minute": "1"}, {"timezone": "Europe/Pari"}, "timezone"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"every": 0}, "every"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"every": -5}, "every"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"every": 1.5}, "every"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"every": None}, "every"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"every": 2**31}, "every"),
    (IntervalSchedule, {"every": 2**30, "period": "hours"}, {"period": "days"}, "every"),
    (IntervalSchedule, {"every": 1, "period": "hours"}, {"period": "fortnights"}, "period"),
    (SolarSchedule, {"event": "sunset", "latitude": 1, "longitude": 1}, {"latitude": 91}, "latitude"),
    (SolarSchedule, {"event": "sunset", "latitude": 1, "longitude": 1}, {"latitude": 12345}, "latitude"),
    (SolarSchedule, {"event": "sunset", "latitude": 1, "longitude": 1}, {"longitude": -180.5}, "longitude"),
    (SolarSchedule, {"event": "sunset", "latitude": 1, "longitude": 1}, {"event": "teatime"}, "event"),
    (ClockedSchedule, {"clocked_time": NEXT_YEAR}, {"clocked_time": "soon"}, "clocked_time"),
    (ClockedSchedule, {"clocked_time": NEXT_YEAR}, {"clocked_time": None}, "clocked_time"),
]


def _edited(row: Any, bad: dict[str, Any]) -> Any:
    for name, value in bad.items():
        setattr(row, name, value)
    return row


def _bulk_update(model: Any, row: Any, bad: dict[str, Any]) -> Any:
    return model.objects.bulk_update([_edited(row, bad)], list(bad))


SCHEDULE_WAYS: dict[str, Callable[[Any, Any, dict[str, Any], dict[str, Any]], Any]] = {
    "full_clean": lambda model, row, good, bad: model(**{**good, **bad}).full_clean(),
    "save of a new one": lambda model, row, good, bad: model(**{**good, **bad}).save(),
    "save of an edit": lambda model, row, good, bad: _edited(row, bad).save(),
    "create": lambda model, row, good, bad: model.objects.create(**{**good, **bad}),
    "get_or_create": lambda model, row, good, bad: model.objects.get_or_create(**{**good, **bad}),
    "update_or_create": lambda model, row, good, bad: model.objects.update_or_create(**good, defaults=bad),
    "bulk_create": lambda model, row, good, bad: model.objects.bulk_create([model(**{**good, **bad})]),
    "bulk_update": lambda model, row, good, bad: _bulk_update(model, row, bad),
    "update": lambda model, row, good, bad: model.objects.filter(pk=row.pk).update(**bad),
}


@pytest.mark.parametrize("way", SCHEDULE_WAYS)
@pytest.mark.parametrize(("model", "good", "bad", "field"), SCHEDULES)
def test_a_bad_schedule(model: Any, good: dict[str, Any], bad: dict[str, Any], field: str, way: str) -> None:
    row = model.objects.create(**good)
    before = row.value()
    with pytest.raises(ValidationError) as caught:
        SCHEDULE_WAYS[way](model, row, good, bad)
    assert list(caught.value.message_dict) == [field]
    (kept,) = model.objects.all()
    assert kept.value() == before
    assert not Change.objects.exists()


def test_an_expression_cannot_leave_a_bad_value() -> None:
    row = IntervalSchedule.objects.create(every=2, period="hours")
    assert IntervalSchedule.objects.update(every=F("every") - 1) == 1
    with pytest.raises(ValidationError) as caught:
        IntervalSchedule.objects.update(every=F("every") - 1)
    assert list(caught.value.message_dict) == ["every"]
    row.refresh_from_db()
    assert row.every == 1


@pytest.fixture
def hourly() -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=1, period="hours")


@pytest.fixture
def daily() -> CrontabSchedule:
    return CrontabSchedule.objects.create(minute="0", hour="9")


@pytest.fixture
def once() -> ClockedSchedule:
    return ClockedSchedule.objects.create(clocked_time=NEXT_YEAR)


Rows = dict[str, Any]


@pytest.fixture
def rows(hourly: IntervalSchedule, daily: CrontabSchedule, once: ClockedSchedule) -> Rows:
    return {"hourly": hourly, "daily": daily, "once": once}


#: Changes to a good hourly task; a text that names a fixture stands for its row.
TASKS: list[tuple[dict[str, Any], set[str]]] = [
    ({"interval": None}, {"interval"}),
    ({"crontab": "daily"}, {"interval", "crontab"}),
    ({"args": '{"a": 1}'}, {"args"}),
    ({"args": {"a": 1}}, {"args"}),
    ({"args": "[None]"}, {"args"}),
    ({"args": "[NaN]"}, {"args"}),
    ({"args": [float("inf")]}, {"args"}),
    ({"args": [UNKNOWN]}, {"args"}),
    ({"args": "7"}, {"args"}),
    ({"args": None}, {"args"}),
    ({"args": "[" * 100_000}, {"args"}),
    ({"kwargs": "[1, 2]"}, {"kwargs"}),
    ({"kwargs": [1, 2]}, {"kwargs"}),
    ({"kwargs": "{'a': 1}"}, {"kwargs"}),
    ({"headers": "[1]"}, {"headers"}),
    ({"headers": "nonsense"}, {"headers"}),
    ({"headers": '{"id": "1"}'}, {"headers"}),
    ({"headers": {"tenant": "a", "onebeat_run": 1}}, {"headers"}),
    ({"args": "1", "kwargs": "2"}, {"args", "kwargs"}),
    ({"expires": NEXT_YEAR, "expire_seconds": 60}, {"expire_seconds"}),
]


def _task(**fields: Any) -> PeriodicTask:
    return PeriodicTask(name="bad", task="t", **fields)


TASK_WAYS: dict[str, Callable[[PeriodicTask, dict[str, Any], dict[str, Any]], Any]] = {
    "full_clean": lambda task, good, bad: _task(**{**good, **bad}).full_clean(),
    "save of a new one": lambda task, good, bad: _task(**{**good, **bad}).save(),
    "save of an edit": lambda task, good, bad: _edited(task, bad).save(),
    "save of these fields": lambda task, good, bad: _edited(task, bad).save(update_fields=list(bad)),
    "create": lambda task, good, bad: PeriodicTask.objects.create(name="bad", task="t", **{**good, **bad}),
    "update_or_create": lambda task, good, bad: PeriodicTask.objects.update_or_create(name=task.name, defaults=bad),
    "bulk_create": lambda task, good, bad: PeriodicTask.objects.bulk_create([_task(**{**good, **bad})]),
    "bulk_update": lambda task, good, bad: _bulk_update(PeriodicTask, task, bad),
    "update": lambda task, good, bad: PeriodicTask.objects.filter(pk=task.pk).update(**bad),
}


def _check_refused(task: PeriodicTask, do: Callable[[], Any], named: set[str]) -> None:
    before = PeriodicTask.objects.values().get()
    Change.objects.all().delete()
    with pytest.raises(ValidationError) as caught:
        do()
    assert set(caught.value.message_dict) & named, caught.value.message_dict
    assert set(caught.value.message_dict) <= named
    assert PeriodicTask.objects.values().get() == before
    assert not Change.objects.exists()


@pytest.mark.parametrize("way", TASK_WAYS)
@pytest.mark.parametrize(("bad", "named"), TASKS, ids=named_alike)
def test_a_bad_task(rows: Rows, bad: dict[str, Any], named: set[str], way: str) -> None:
    good = {"interval": rows["hourly"]}
    task = PeriodicTask.objects.create(name="good", task="t", **good)
    bad = {name: rows.get(value, value) if isinstance(value, str) else value for name, value in bad.items()}
    _check_refused(task, lambda: TASK_WAYS[way](task, good, bad), named)


@pytest.mark.parametrize(("name", "value", "there"), [
    ("expire_seconds", 60, {"expires": NEXT_YEAR}),
    ("expires", NEXT_YEAR, {"expire_seconds": 60}),
])  # fmt: skip
def test_a_second_end_is_refused_by_update(rows: Rows, name: str, value: Any, there: dict[str, Any]) -> None:
    task = PeriodicTask.objects.create(name="good", task="t", interval=rows["hourly"], **there)
    tasks = PeriodicTask.objects.filter(pk=task.pk)
    _check_refused(task, lambda: tasks.update(**{name: value}), {"expire_seconds"})
    tasks.update(**{name: value, **dict.fromkeys(there)})
    tasks.update(**{name: None})


def test_a_clocked_task_runs_once(rows: Rows) -> None:
    task = PeriodicTask.objects.create(name="good", task="t", clocked=rows["once"], one_off=True)
    tasks = PeriodicTask.objects.filter(pk=task.pk)
    for do in (
        lambda: _task(clocked=rows["once"]).full_clean(),
        lambda: _task(clocked=rows["once"]).save(),
        lambda: PeriodicTask.objects.create(name="bad", task="t", clocked=rows["once"]),
        lambda: _edited(task, {"one_off": False}).save(),
        lambda: _edited(task, {"one_off": False}).save(update_fields=["one_off"]),
        lambda: _bulk_update(PeriodicTask, task, {"one_off": False}),
        lambda: tasks.update(one_off=False),
        lambda: tasks.update(clocked=rows["once"], one_off=False),
    ):
        _check_refused(task, do, {"one_off"})


def test_the_bulk_ways_make_a_clocked_task_one_off(rows: Rows) -> None:
    (made,) = PeriodicTask.objects.bulk_create([_task(clocked=rows["once"])])
    assert PeriodicTask.objects.get(name="bad").one_off and made.one_off
    for edit in (
        lambda task: PeriodicTask.objects.filter(pk=task.pk).update(interval=None, clocked=rows["once"]),
        lambda task: PeriodicTask.objects.filter(pk=task.pk).update(interval_id=None, clocked_id=rows["once"].pk),
        lambda task: _bulk_update(PeriodicTask, task, {"interval": None, "clocked": rows["once"]}),
    ):
        task = PeriodicTask.objects.create(name="hourly", task="t", interval=rows["hourly"])
        edit(task)
        task.refresh_from_db()
        assert (task.interval_id, task.clocked_id, task.one_off) == (None, rows["once"].pk, True)
        task.delete()


def test_update_changes_the_kind_of_schedule_in_one_go(rows: Rows) -> None:
    task = PeriodicTask.objects.create(name="good", task="t", interval=rows["hourly"])
    tasks = PeriodicTask.objects.filter(pk=task.pk)
    _check_refused(task, lambda: tasks.update(crontab=rows["daily"]), {"crontab"})
    _check_refused(task, lambda: tasks.update(crontab=rows["daily"], clocked=rows["once"]), {"crontab", "clocked"})
    everything = {"interval": None, "crontab": None, "solar": None, "clocked": None}
    _check_refused(task, lambda: tasks.update(**everything), {"interval"})
    assert tasks.update(crontab=rows["daily"], interval=None, one_off=False) == 1
    assert tasks.update(**{**everything, "interval": rows["hourly"]}) == 1
    assert PeriodicTask.objects.none().update(interval=None) == 0
    assert PeriodicTask.objects.filter(pk__in=[]).update(enabled=True) == 0


def test_dicts_and_lists_are_stored_as_json(rows: Rows) -> None:
    fields: dict[str, Any] = {"args": (1, "a"), "kwargs": {"full": True}, "headers": {}}
    task = PeriodicTask.objects.create(name="a", task="t", interval=rows["hourly"], **fields)
    expected = {"args": '[1, "a"]', "kwargs": '{"full": true}', "headers": "{}"}
    assert PeriodicTask.objects.values(*expected).get() == expected
    assert {name: getattr(task, name) for name in expected} == expected
    assert PeriodicTask.objects.update(args=[2]) == 1
    assert PeriodicTask.objects.filter(args=[2]).exists()
    assert PeriodicTask.objects.update(args="") == 1


def test_headers_from_before_the_rule_may_stay_as_they_are(rows: Rows) -> None:
    PeriodicTask.objects.bulk_create([PeriodicTask(name="old", task="t", interval=rows["hourly"])])
    with connection.cursor() as cursor:
        cursor.execute("""UPDATE django_celery_beat_periodictask SET headers = '{"id": "x", "retries": 2}'""")
    task = PeriodicTask.objects.get()
    task.description = "edited"
    task.full_clean()
    task.save()
    task.headers = {"retries": 2, "tenant": "a", "id": "x"}
    PeriodicTask.objects.bulk_update([task], ["headers"])
    task.headers = {"id": "y", "retries": 2, "root_id": "z"}
    with pytest.raises(ValidationError, match="sets id, root_id; give them other names"):
        task.save()
    assert PeriodicTask.objects.values_list("headers", flat=True).get() == '{"retries": 2, "tenant": "a", "id": "x"}'


def test_a_form_for_some_fields_says_what_is_wrong_with_the_others(rows: Rows) -> None:
    task = _task()
    form = modelform_factory(PeriodicTask, fields=["enabled"])({"enabled": "on"}, instance=task)
    assert list(form.errors) == [NON_FIELD_ERRORS]
    crontab = CrontabSchedule(day_of_month="31")
    form = modelform_factory(CrontabSchedule, fields=["month_of_year"])({"month_of_year": "2"}, instance=crontab)
    assert list(form.errors) == [NON_FIELD_ERRORS]
    whole = modelform_factory(IntervalSchedule, fields="__all__")({"every": "", "period": "days"})
    assert set(whole.errors) == {"every"} and len(whole.errors["every"]) == 1


def test_an_interval_of_a_part_of_a_second_is_kept_exactly_or_refused() -> None:
    from celery.schedules import schedule

    row = IntervalSchedule.from_schedule(schedule(timedelta(seconds=1.5)))
    assert (row.every, row.period) == (1_500_000, "microseconds")
    assert row.schedule.run_every == timedelta(seconds=1.5)
    for bad in (timedelta(days=1, microseconds=1), timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(ValidationError):
            IntervalSchedule.from_schedule(schedule(bad))
    assert IntervalSchedule.objects.count() == 1


def test_a_crontab_from_settings_is_read_as_celery_reads_it() -> None:
    from celery.schedules import crontab

    texts = {
        "1,2,3": [1, 2, 3],
        "0": "sunday",
        "5-1": "fri-mon",
        "6-1": "6-1",
    }
    for text, given in texts.items():
        made = CrontabSchedule.from_schedule(crontab(minute="0", day_of_week=given))
        assert CrontabSchedule.objects.get(pk=made.pk).day_of_week == text
    assert CrontabSchedule.objects.create(day_of_week="7").day_of_week == "0"


@pytest.mark.parametrize("extra", ["[1]", "nonsense", '{"a": NaN}', "5"])
def test_message_options_are_a_json_object(extra: str) -> None:
    task = PeriodicTask.objects.create(
        name="t", task="t", interval=IntervalSchedule.objects.create(every=1, period="days")
    )
    row = TaskOptions(task=task, extra=extra)
    stored = TaskOptions.objects.filter(pk=task.pk)
    for way in (
        row.full_clean,
        row.save,
        lambda: TaskOptions.objects.bulk_create([row]),
        lambda: stored.update(extra=extra),
    ):
        with pytest.raises(ValidationError, match="extra must be a JSON object") as error:
            way()
        assert set(error.value.message_dict) == {"extra"}
    assert not stored.exists()
    TaskOptions(task=task, extra={"time_limit": 5}).save()
    assert stored.update(extra={"time_limit": 6}) == 1
