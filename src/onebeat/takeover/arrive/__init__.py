"""Arrive: a django-celery-beat database becomes one of onebeat's, in place."""
