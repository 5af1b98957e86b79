"""Benchmarks: onebeat beside django-celery-beat and celery-redbeat, and beside the limits of the machine."""
