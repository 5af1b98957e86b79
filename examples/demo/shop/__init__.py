"""The demo's project: a shop that follows up on its orders."""

from shop.celery import app as celery_app

__all__ = ["celery_app"]
