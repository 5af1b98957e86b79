"""What other people's apps hang on these tables."""

from django.db import models
from django_celery_beat.models import PeriodicTask


class Reminder(models.Model):
    task = models.ForeignKey("django_celery_beat.PeriodicTask", null=True, on_delete=models.CASCADE)
    clocked = models.ForeignKey("django_celery_beat.ClockedSchedule", on_delete=models.CASCADE)
    note = models.CharField(max_length=50)


class Rota(models.Model):
    crontab = models.OneToOneField("django_celery_beat.CrontabSchedule", on_delete=models.CASCADE)
    note = models.CharField(max_length=50)


class OwnedTask(PeriodicTask):
    owner = models.CharField(max_length=50)
