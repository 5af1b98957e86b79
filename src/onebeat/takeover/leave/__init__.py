"""Leave: what onebeat added gives way, so that django-celery-beat can go on with the same tables."""
