"""onebeat inside Celery's own processes."""

from onebeat.celery.guarding import Guarded, guard

__all__ = ["Guarded", "guard"]
