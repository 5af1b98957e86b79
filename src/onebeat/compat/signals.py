"""`django_celery_beat.signals`."""

__all__ = ["signals_connect"]


def signals_connect() -> None:
    """Kept for code that calls it. There is nothing to connect: changes are seen in the data."""
