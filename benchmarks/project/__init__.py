"""The small Django project that every contestant runs in."""
