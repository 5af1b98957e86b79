"""The public names of django-celery-beat 2.9 that are not kept, or do not do as they did, each with the reason."""

from __future__ import annotations

GONE: dict[str, str] = {}
OTHERWISE: dict[str, str] = {}
