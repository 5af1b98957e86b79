"""Ways in which projects register django-celery-beat's models again. Each runs in a process of its own."""

from __future__ import annotations

import sys
import types
from typing import Any

SCHEDULES = ("IntervalSchedule", "CrontabSchedule", "SolarSchedule", "ClockedSchedule")


def unfold_recipe() -> Any:
    """The one of django-unfold's documentation, word for word."""
    from django.contrib import admin
    from django_celery_beat.admin import ClockedScheduleAdmin as BaseClockedScheduleAdmin
    from django_celery_beat.admin import CrontabScheduleAdmin as BaseCrontabScheduleAdmin
    from django_celery_beat.admin import PeriodicTaskAdmin as BasePeriodicTaskAdmin
    from django_celery_beat.admin import PeriodicTaskForm, TaskSelectWidget
    from django_celery_beat.models import (
        ClockedSchedule,
        CrontabSchedule,
        IntervalSchedule,
        PeriodicTask,
        SolarSchedule,
    )
    from unfold.admin import ModelAdmin
    from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

    admin.site.unregister(PeriodicTask)
    admin.site.unregister(IntervalSchedule)
    admin.site.unregister(CrontabSchedule)
    admin.site.unregister(SolarSchedule)
    admin.site.unregister(ClockedSchedule)

    class UnfoldTaskSelectWidget(UnfoldAdminSelectWidget, TaskSelectWidget):
        pass

    class UnfoldPeriodicTaskForm(PeriodicTaskForm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.fields["task"].widget = UnfoldAdminTextInputWidget()
            self.fields["regtask"].widget = UnfoldTaskSelectWidget()

    @admin.register(PeriodicTask)
    class PeriodicTaskAdmin(BasePeriodicTaskAdmin, ModelAdmin):
        form = UnfoldPeriodicTaskForm

    @admin.register(IntervalSchedule)
    class IntervalScheduleAdmin(ModelAdmin):
        pass

    @admin.register(CrontabSchedule)
    class CrontabScheduleAdmin(BaseCrontabScheduleAdmin, ModelAdmin):
        pass

    @admin.register(SolarSchedule)
    class SolarScheduleAdmin(ModelAdmin):
        pass

    @admin.register(ClockedSchedule)
    class ClockedScheduleAdmin(BaseClockedScheduleAdmin, ModelAdmin):
        pass

    return admin.site


def subclass() -> Any:
    """A class of one's own on django-celery-beat's."""
    from django.contrib import admin
    from django_celery_beat.admin import PeriodicTaskAdmin
    from django_celery_beat.models import PeriodicTask

    class Mine(PeriodicTaskAdmin):
        list_display = (*PeriodicTaskAdmin.list_display, "total_run_count")

    admin.site.unregister(PeriodicTask)
    admin.site.register(PeriodicTask, Mine)
    return admin.site


def subclass_of_ours() -> Any:
    """A class of one's own on onebeat's, with unfold's beside it."""
    from django.contrib import admin
    from django_celery_beat.models import PeriodicTask
    from unfold.admin import ModelAdmin

    from onebeat.admin import PeriodicTaskAdmin

    class Mine(PeriodicTaskAdmin, ModelAdmin):  # type: ignore[misc]
        pass

    admin.site.unregister(PeriodicTask)
    admin.site.register(PeriodicTask, Mine)
    return admin.site


def plain() -> Any:
    """Django's own class."""
    from django.apps import apps
    from django.contrib import admin

    for name in ("PeriodicTask", *SCHEDULES):
        model = apps.get_model("django_celery_beat", name)
        admin.site.unregister(model)
        admin.site.register(model)
    return admin.site


def not_registered() -> Any:
    """Nothing of the people's tables is in the admin; the engine's are."""
    from django.apps import apps
    from django.contrib import admin

    for name in ("PeriodicTask", *SCHEDULES):
        admin.site.unregister(apps.get_model("django_celery_beat", name))
    return admin.site


def own_site() -> Any:
    """A site of one's own under a name of its own, with our classes, beside the default one with plain ones."""
    from django.contrib import admin
    from django.urls import path

    plain_classes = dict(admin.site._registry)
    site = admin.AdminSite(name="office")
    for model, registered in plain_classes.items():
        site.register(model, type(registered))
    plain()
    urls: Any = types.ModuleType("office_urls")
    urls.urlpatterns = [path("admin/", admin.site.urls), path("office/", site.urls)]
    sys.modules["office_urls"] = urls
    from django.conf import settings

    settings.ROOT_URLCONF = "office_urls"
    return site


def own_site_without_tasks() -> Any:
    """A site of one's own with the engine's tables alone, where the default site has nothing of django-celery-beat."""
    from django.contrib import admin
    from django.urls import path

    ours = {model: type(each) for model, each in admin.site._registry.items() if model._meta.app_label != "auth"}
    site = admin.AdminSite(name="office")
    for model, registered in ours.items():
        admin.site.unregister(model)
        if model.__name__ in ("Occurrence", "TaskState", "Beat", "Action"):
            site.register(model, registered)
    urls: Any = types.ModuleType("office_urls")
    urls.urlpatterns = [path("office/", site.urls)]
    sys.modules["office_urls"] = urls
    from django.conf import settings

    settings.ROOT_URLCONF = "office_urls"
    return site


def crawl(name: str) -> dict[str, Any]:
    """Register as the recipe says; then every page of the app on that site, each action, and a save: what was answered
    other than as it should be.
    """
    from django.contrib.auth.models import User
    from django.test import Client
    from django.urls import reverse

    from onebeat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
    from tests.admin.browser_forms import sent
    from tests.admin.rows import fill

    site = globals()[name]()
    fill(2)
    task = PeriodicTask.objects.create(
        name="One", task="shop.report", interval=IntervalSchedule.objects.create(every=77, period="minutes")
    )
    CrontabSchedule.objects.create(minute="7")
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    base = reverse("admin:index", current_app=site.name)
    faults: list[str] = []

    def get(url: str, *expected: int) -> str:
        response = client.get(url)
        text = response.content.decode()
        if response.status_code not in (expected or (200,)):
            faults.append(f"{response.status_code} {url}")
        # A page leads to no other site's pages.
        others = [one for one in ("/admin/", "/office/") if one != base]
        faults.extend(f"{url} leads to {one}" for one in others if f'href="{one}' in text)
        return text

    get(base)
    pages: dict[str, Any] = {}
    for model in site._registry:
        if model._meta.app_label != "django_celery_beat":
            continue
        kind = f"{base}django_celery_beat/{model._meta.model_name}/"
        row = task if model is PeriodicTask else model._default_manager.first()
        pages[model.__name__] = get(kind)
        for query in ("?q=One", "?o=1", "?o=2.1", "?p=1"):
            get(kind + query, 200, 302)
        get(kind + "add/", 200, 403)
        if row is not None:
            for part in ("change", "delete", "history"):
                pages[f"{model.__name__} {part}"] = get(f"{kind}{row.pk}/{part}/", 200, 403)
        for action, *_ in site._registry[model].get_action_choices(_request(client), []):
            data = {"action": action, "_selected_action": [row.pk]} if row is not None else {}
            if data and client.post(kind, data).status_code not in (200, 302):
                faults.append(f"action {action} of {model.__name__}")
    saved = None
    if PeriodicTask in site._registry:
        kind = f"{base}django_celery_beat/periodictask/"
        data = {**sent(pages["PeriodicTask change"]), "description": ["changed"]}
        saved = client.post(f"{kind}{task.pk}/change/", data).status_code
        task.refresh_from_db()
        if (saved, task.description, task.interval.every) != (302, "changed", 77):
            faults.append(f"saving: {saved} {task.description}")
    return {
        "faults": faults,
        "ours": "ob-preview" in pages.get("PeriodicTask change", ""),
        "banner": sorted(each for each, text in pages.items() if "ob-banner" in text),
    }


def _request(client: Any) -> Any:
    from django.contrib.auth.models import User
    from django.test import RequestFactory

    request = RequestFactory().get("/")
    request.user = User.objects.get(username="root")
    return request
