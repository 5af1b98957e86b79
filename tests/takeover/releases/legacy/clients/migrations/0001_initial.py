import django.db.models.deletion
from django.db import migrations, models

KEY = models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def key(to, kind=models.ForeignKey, **more):
    return kind(on_delete=django.db.models.deletion.CASCADE, to="django_celery_beat." + to, **more)


class Migration(migrations.Migration):
    initial = True

    # The last one of django-celery-beat 2.0.0.
    dependencies = [("django_celery_beat", "0012_periodictask_expire_seconds")]

    operations = [
        migrations.CreateModel(
            name="Reminder",
            fields=[
                ("id", KEY),
                ("note", models.CharField(max_length=50)),
                ("clocked", key("clockedschedule")),
                ("task", key("periodictask", null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Rota",
            fields=[
                ("id", KEY),
                ("note", models.CharField(max_length=50)),
                ("crontab", key("crontabschedule", models.OneToOneField)),
            ],
        ),
        migrations.CreateModel(
            name="OwnedTask",
            fields=[
                (
                    "periodictask_ptr",
                    key(
                        "periodictask",
                        models.OneToOneField,
                        auto_created=True,
                        parent_link=True,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("owner", models.CharField(max_length=50)),
            ],
            bases=("django_celery_beat.periodictask",),
        ),
    ]
