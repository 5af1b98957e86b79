"""A small Django and Celery project: what the tests run against."""

from tests.project.celery import app as celery_app

__all__ = ["celery_app"]
