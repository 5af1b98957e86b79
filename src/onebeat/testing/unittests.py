"""The same for `unittest`: a mixin for Django's test cases."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from onebeat.testing.kit import Onebeat

if TYPE_CHECKING:
    from unittest import TestCase as Base
else:
    Base = object


class OnebeatMixin(Base):
    """`self.onebeat` is an `Onebeat`. Stand before Django's `TestCase` or `TransactionTestCase`."""

    onebeat: Onebeat

    def setUp(self) -> None:
        """As unittest's."""
        super().setUp()
        self.onebeat = Onebeat().start()
        self.addCleanup(self.onebeat.stop)

    def run(self, result: Any = None) -> Any:
        """As unittest's. A test that fails tells its timeline."""
        method = getattr(self, self._testMethodName)

        @wraps(method)
        def told(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except AssertionError as error:
                error.add_note(f"onebeat timeline (UTC):\n{self.onebeat.timeline()}")
                raise

        setattr(self, self._testMethodName, told)
        try:
            return super().run(result)
        finally:
            delattr(self, self._testMethodName)
