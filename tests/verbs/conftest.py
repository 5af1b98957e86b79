"""The bench of the engine's tests, for the verbs' tests as well."""

from __future__ import annotations

from tests.engine.conftest import bench, pytest_collection_modifyitems

__all__ = ["bench", "pytest_collection_modifyitems"]
