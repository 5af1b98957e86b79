"""Django REST framework: ModelSerializers of all fields, and the schema that drf-spectacular makes of them."""

from __future__ import annotations

from typing import Any

PACKAGES = ("djangorestframework==3.17.1", "drf-spectacular==0.30.0")
DID = (
    "ModelSerializers of all fields: rows listed, changed and posted, an existing schedule answered with its row, bad "
    "ones with 400; the schema of drf-spectacular"
)
APPS = '"rest_framework", "drf_spectacular",'
SETTINGS = """
REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
}
"""
URLS = 'path("api/", include("shop.api")),'
FILES = (
    (
        "shop/api.py",
        """
from django.urls import path
from django_celery_beat import models
from drf_spectacular.views import SpectacularAPIView
from rest_framework import routers, serializers, viewsets
from timezone_field.rest_framework import TimeZoneSerializerField

# As django-celery-beat needs it: without it a crontab's zone is no JSON.
ZONE = {"timezone": TimeZoneSerializerField(use_pytz=False, required=False)}

router = routers.DefaultRouter()
for kind in (
    models.IntervalSchedule, models.CrontabSchedule, models.SolarSchedule, models.ClockedSchedule, models.PeriodicTask
):
    meta = type("Meta", (), dict(model=kind, fields="__all__"))
    serializer = type(kind.__name__ + "Serializer", (serializers.ModelSerializer,), dict(
        Meta=meta, **(ZONE if kind is models.CrontabSchedule else {})
    ))
    view = type(kind.__name__ + "View", (viewsets.ModelViewSet,), dict(
        queryset=kind.objects.order_by("pk"), serializer_class=serializer
    ))
    router.register(kind.__name__.lower(), view)
urlpatterns = [*router.urls, path("schema/", SpectacularAPIView.as_view())]
""",
    ),
)
NOT_SEEN = "posting the value of an existing schedule answers 400, where it should answer with its row"
KINDS = ("intervalschedule", "crontabschedule", "solarschedule", "clockedschedule", "periodictask")


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def look() -> Any:
    from recipes import kit

    client = kit.browser()
    shown = {kind: client.get(f"/api/{kind}/").json() for kind in KINDS}
    schema = kit.page(client, "/api/schema/")
    assert all(f"/api/{kind}/{{id}}/" in schema for kind in KINDS), schema[:3000]
    # Rows of one value are merged, and run state goes on: what is left is what a task says of itself.
    left_out = ("id", "interval", "crontab", "clocked", "last_run_at", "total_run_count", "date_changed")
    rows = [row for row in shown["periodictask"] if not row["name"].startswith("celery.")]
    tasks = sorted(([{k: v for k, v in row.items() if k not in left_out}] for row in rows), key=str)
    return [kit.tasks(), tasks, sorted(shown["intervalschedule"][0]), sorted(shown["crontabschedule"][0])]


def edit() -> None:
    from django_celery_beat.models import IntervalSchedule, PeriodicTask
    from recipes import kit

    client = kit.browser()

    def send(method: str, path: str, **data: Any) -> tuple[int, Any]:
        answer = getattr(client, method)(f"/api/{path}", data, content_type="application/json")
        return answer.status_code, answer.json()

    before = PeriodicTask.objects.get(name="before")
    often = IntervalSchedule.objects.get(every=1, period="seconds")
    assert send("patch", f"periodictask/{before.pk}/", enabled=False)[0] == 200
    status, interval = send("post", "intervalschedule/", every=1, period="seconds")
    assert (status, interval["id"]) == (201, often.pk), (status, interval)
    for bad in ({"hour": "99"}, {"minute": "x"}):
        status, said = send("post", "crontabschedule/", **bad)
        assert (status, list(said)) == (400, list(bad)), (status, said)
    status, said = send("post", "periodictask/", name="bad", task="shop.tasks.tidy_up")
    assert status == 400, (status, said)
    status, said = send("post", "periodictask/", name="before", task="a.b", interval=often.pk)
    assert (status, list(said)) == (400, ["name"]), (status, said)
    status, said = send("post", "periodictask/", name="after", task="shop.tasks.tidy_up", interval=often.pk)
    assert status == 201, (status, said)
