"""A project whose code a test writes, as the tests of declarations have it."""

from __future__ import annotations

from tests.declare.conftest import code, still

__all__ = ["code", "still"]
