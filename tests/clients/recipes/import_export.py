"""django-import-export: tasks out of the admin into a file, and in again from one."""

from __future__ import annotations

from typing import Any

PACKAGES = ("django-import-export==4.4.3", "tablib")
DID = (
    "tasks and schedules are exported by its pages of the admin; tasks are changed and added by importing a file there"
)
APPS = '"import_export",'
FILES = (
    (
        "shop/admin.py",
        """
from django.contrib import admin
from django_celery_beat.admin import PeriodicTaskAdmin
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
from import_export import resources
from import_export.admin import ImportExportModelAdmin


class TaskResource(resources.ModelResource):
    class Meta:
        model = PeriodicTask
        import_id_fields = ["name"]
        exclude = ["id", "last_run_at", "total_run_count", "date_changed"]
        skip_unchanged = True
        clean_model_instances = True


class TaskAdmin(ImportExportModelAdmin, PeriodicTaskAdmin):
    resource_classes = [TaskResource]


admin.site.unregister(PeriodicTask)
admin.site.register(PeriodicTask, TaskAdmin)
for model in (IntervalSchedule, CrontabSchedule):
    admin.site.unregister(model)
    admin.site.register(model, ImportExportModelAdmin)
""",
    ),
)


def build() -> None:
    from recipes import kit

    kit.furnish()
    kit.every_second("before")


def exported(model: str) -> list[dict[str, str]]:
    import csv
    import io

    from recipes import kit

    client, path = kit.browser(), f"/admin/django_celery_beat/{model}/export/"
    shown = client.get(path)
    assert shown.status_code == 200, shown.content.decode()[:3000]
    form = shown.context["form"]
    fields = {
        f.html_name: "on" for f in form if f.name.startswith(("taskresource_", f"{model}")) or "resource" in f.name
    }
    answer = client.post(path, {**fields, "format": "0", "resource": "0"})
    assert answer["Content-Type"].startswith("text/csv"), answer.content.decode()[:3000]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def look() -> Any:
    from recipes import kit

    tasks = [row for row in exported("periodictask") if not row["name"].startswith("celery.")]
    kept = ("name", "task", "args", "enabled", "one_off")
    found = sorted([row[name] for name in kept] for row in tasks)
    schedules = {(row["minute"], row["timezone"]) for row in exported("crontabschedule") if row["minute"] != "0"}
    return [kit.tasks(), found, sorted(schedules)]


def edit() -> None:
    import csv
    import io

    from django.core.files.uploadedfile import SimpleUploadedFile
    from recipes import kit

    (before,) = (row for row in exported("periodictask") if row["name"] == "before")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(before))
    writer.writeheader()
    writer.writerows([{**before, "enabled": "0"}, {**before, "name": "after"}])
    client, path = kit.browser(), "/admin/django_celery_beat/periodictask/"
    file = SimpleUploadedFile("tasks.csv", text.getvalue().encode(), "text/csv")
    asked = client.post(f"{path}import/", {"format": "0", "resource": "", "import_file": file})
    assert asked.status_code == 200 and not asked.context["result"].has_errors(), asked.content.decode()[:5000]
    confirmed = client.post(f"{path}process_import/", asked.context["confirm_form"].initial)
    assert confirmed.status_code == 302, confirmed.content.decode()[:5000]
