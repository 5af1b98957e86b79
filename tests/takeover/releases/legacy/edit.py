"""What people and their code do to the rows: insert, update, delete, by the installed models and by the admin."""

from django.contrib.auth.models import User
from django.test import Client
from legacy.at import at, column, pinned


def edit(word, minute):
    """Returns the names of the tasks that are left of it."""
    from django_celery_beat.models import ClockedSchedule, IntervalSchedule, PeriodicTask

    with pinned(at(minute)):
        ten = IntervalSchedule.objects.filter(every=10, period="minutes").order_by("pk")[0]
        soon, _ = ClockedSchedule.objects.get_or_create(clocked_time=column(at(minute + 2)))
        again, created = ClockedSchedule.objects.get_or_create(clocked_time=column(at(minute + 2)))
        assert (again.pk, created) == (soon.pk, False)
        PeriodicTask.objects.create(name=word + ", once", task="legacy." + word, clocked=soon, one_off=True)
        gone = PeriodicTask.objects.create(name=word + ", gone", task="legacy.gone", interval=ten)
        kept = PeriodicTask.objects.create(name=word + ", kept", task="legacy.kept", interval=ten, enabled=False)
        kept.description = "edited"
        kept.save()
        PeriodicTask.objects.filter(pk=kept.pk).update(queue="elsewhere")
        client = Client()
        client.force_login(User.objects.get(username="root"))
        address = f"/admin/django_celery_beat/periodictask/{gone.pk}/delete/"
        assert client.post(address, {"post": "yes"}).status_code == 302
        fine = IntervalSchedule.objects.filter(every=41, period="minutes")
        # Newer ones show the tasks of a schedule below it.
        inline = {"periodictask_set-TOTAL_FORMS": "0", "periodictask_set-INITIAL_FORMS": "0"}
        form = dict(inline, every="41", period="minutes")
        answer = client.post("/admin/django_celery_beat/intervalschedule/add/", form)
        assert answer.status_code == 302, answer.content
        assert fine.count() == 1
        fine.get().delete()
    return sorted(PeriodicTask.objects.filter(name__startswith=word).values_list("name", flat=True))
