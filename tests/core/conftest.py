"""Settings for property tests: a busy machine is no failure, so no example has a deadline of its own."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("core", deadline=None)
settings.load_profile("core")
