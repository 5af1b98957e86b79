from celery import Celery

app = Celery("legacy")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
