"""REST serializers and factories of other packages, made from the models as they are: the real packages, from PyPI."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.processes import ROOT, run_python
from tests.scratch import Scratch
from tests.takeover.releases import environments

PACKAGES = (
    "djangorestframework==3.18.3", "drf-spectacular==0.30.0", "django-ninja==1.7.1", "model-bakery==1.24.2",
    "factory-boy==3.3.3", "pydantic==2.14.4", "pydantic-core==2.50.5", "annotated-types==0.8.0",
    "typing-inspection==0.4.5", "faker==40.63.0", "inflection==0.5.1", "uritemplate==4.2.0", "jsonschema==4.26.0",
    "jsonschema-specifications==2025.9.1", "referencing==0.37.0", "rpds-py==2026.9.1", "attrs==26.1.0", "pyyaml==6.0.4",
)  # fmt: skip


@pytest.fixture
def env(database: Scratch) -> dict[str, str]:
    try:
        beside = environments.beside(list(PACKAGES))
    except environments.NotHere as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT RUN: {reason}")
    return {**database.env, "PYTHONPATH": os.pathsep.join((str(ROOT), beside))}


VALUES: dict[str, dict[str, Any]] = {
    "IntervalSchedule": {"every": 5, "period": "minutes"},
    "CrontabSchedule": {"minute": "5", "day_of_week": "mon"},
    "SolarSchedule": {"event": "sunset", "latitude": "1.5", "longitude": "2.5"},
    "ClockedSchedule": {"clocked_time": "2031-01-01T00:00:00Z"},
}
#: What is posted, and the fields that the answer, which is a 400, names.
INVALID: list[tuple[str, dict[str, Any], list[str]]] = [
    ("CrontabSchedule", {"minute": "61", "hour": "mon"}, ["hour", "minute"]),
    ("CrontabSchedule", {"timezone": "Mars/Phobos"}, ["timezone"]),
    ("CrontabSchedule", {"day_of_month": "31", "month_of_year": "2"}, ["day_of_month"]),
    ("IntervalSchedule", {"every": 0, "period": "weeks"}, ["every", "period"]),
    ("SolarSchedule", {"event": "sunset", "latitude": "100", "longitude": "2.5"}, ["latitude"]),
    ("PeriodicTask", {"interval": 1, "args": "{", "kwargs": "[]", "headers": "[1]"}, ["args", "headers", "kwargs"]),
    ("PeriodicTask", {"interval": 1, "headers": '{"id": "x"}'}, ["headers"]),
    ("PeriodicTask", {"interval": 1, "crontab": 1}, ["crontab", "interval"]),
    ("PeriodicTask", {"clocked": 1, "one_off": False}, ["one_off"]),
    ("PeriodicTask", {"interval": 1, "expires": "2030-01-01T00:00:00Z", "expire_seconds": 4}, ["expire_seconds"]),
    ("PeriodicTask", {"interval": 1, "name": "taken"}, ["name"]),
]


def test_serializers_of_all_fields_adopt_values_and_name_what_is_wrong(env: dict[str, str]) -> None:
    adopted, refused, edited, nested = run_python(env, serialize)
    assert adopted == {name: [True, True] for name in VALUES}
    assert refused == [fields for _, _, fields in INVALID]
    # An edit: into another row's value, of a part into the same value, of a task alone.
    assert edited == [["every", "period"], ["every"], [], [], ["crontab"], []]
    assert nested == ["args", "minute"]


def serializer(name: str) -> Any:
    from rest_framework import serializers

    from onebeat import models

    meta = type("Meta", (), {"model": getattr(models, name), "fields": "__all__"})
    return type(name, (serializers.ModelSerializer,), {"Meta": meta})


def serialize() -> list[Any]:
    from rest_framework import serializers

    from onebeat.models import IntervalSchedule, PeriodicTask

    def posted(name: str, data: dict[str, Any]) -> Any:
        one = serializer(name)(data=data)
        return one.save() if one.is_valid() else sorted(one.errors)

    adopted = {}
    for name, data in VALUES.items():
        first, second = posted(name, data), posted(name, data)
        adopted[name] = [first.pk == second.pk, type(first)._base_manager.count() == 1]
    interval = IntervalSchedule.objects.get()
    task = PeriodicTask.objects.create(name="taken", task="shop.remind", interval=interval)
    refused = [
        posted(name, ({"name": "new", "task": "shop.remind"} if name == "PeriodicTask" else {}) | data)
        for name, data, _ in INVALID
    ]

    def patched(row: Any, data: dict[str, Any]) -> list[str]:
        one = serializer(type(row).__name__)(row, data=data, partial=True)
        if one.is_valid():
            one.save()
        return sorted(one.errors)

    other = IntervalSchedule.objects.create(every=9, period="minutes")
    edited = [
        patched(other, {"every": 5, "period": "minutes"}),
        patched(other, {"every": 5}),
        patched(other, {"every": 9}),
        patched(task, {"enabled": False}),
        patched(task, {"crontab": 1}),
        patched(task, {"interval": None, "crontab": 1}),
    ]
    nesting = type("Nesting", (serializers.Serializer,), {
        "crontab": serializer("CrontabSchedule")(), "tasks": serializer("PeriodicTask")(many=True),
    })  # fmt: skip
    task_data = {"name": "new", "task": "shop.remind", "interval": 1}
    both = nesting(data={"crontab": {"minute": "61"}, "tasks": [{**task_data, "args": "{"}, task_data]})
    both.is_valid()
    nested = sorted([*both.errors["crontab"], *both.errors["tasks"][0]])
    return [adopted, refused, edited, nested]


def test_schemas_and_factories_are_made_from_the_models(env: dict[str, str]) -> None:
    crontab, ninja, made = run_python(env, schemas_and_factories)
    assert set(crontab) == {"id", "minute", "hour", "day_of_month", "month_of_year", "day_of_week", "timezone"}
    assert {name: crontab[name]["type"] for name in ("minute", "timezone")} == {
        "minute": "string",
        "timezone": "string",
    }
    assert ninja["id"] and ninja["interval"] and ninja["args"] == "[]"
    assert made == ["CrontabSchedule", "ClockedSchedule", "IntervalSchedule", "SolarSchedule", "PeriodicTask", 1]


def schemas_and_factories() -> list[Any]:
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.openapi import AutoSchema
    from factory import Sequence, SubFactory
    from factory.django import DjangoModelFactory
    from model_bakery import baker
    from ninja.orm import create_schema
    from rest_framework import routers, viewsets

    from onebeat import models

    router = routers.DefaultRouter()
    for name in (*VALUES, "PeriodicTask"):
        rows = getattr(models, name)._default_manager.all()
        view = {"queryset": rows, "serializer_class": serializer(name), "schema": AutoSchema()}
        router.register(name, type(name, (viewsets.ModelViewSet,), view))
    schema = SchemaGenerator(patterns=router.urls).get_schema(request=None, public=True)

    # What is left to chance may be no schedule: a latitude of 800, an interval of minus five days.
    baked = [baker.make(models.CrontabSchedule), baker.make(models.ClockedSchedule)]
    baked.append(baker.make(models.IntervalSchedule, every=5))
    baked.append(baker.make(models.SolarSchedule, latitude=1, longitude=2))
    baked.append(baker.make(models.PeriodicTask, interval=baked[2]))
    interval = type("Intervals", (DjangoModelFactory,), {
        "Meta": type("Meta", (), {"model": models.IntervalSchedule}), "every": 5, "period": "minutes",
    })  # fmt: skip
    tasks = type("Tasks", (DjangoModelFactory,), {
        "Meta": type("Meta", (), {"model": models.PeriodicTask}), "task": "shop.remind",
        "name": Sequence("task {}".format), "interval": SubFactory(interval),
    })  # fmt: skip
    intervals = {task.interval_id for task in tasks.create_batch(3)}
    for kind in (models.IntervalSchedule, models.SolarSchedule, models.ClockedSchedule):
        create_schema(kind).from_orm(kind._default_manager.first())
    answer = create_schema(models.PeriodicTask).from_orm(baked[-1]).model_dump(mode="json")
    return [
        schema["components"]["schemas"]["CrontabSchedule"]["properties"], answer,
        [*(type(row).__name__ for row in baked), len(intervals)],
    ]  # fmt: skip
