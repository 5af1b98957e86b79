"""The same for `unittest`: a mixin for Django's test cases."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING
from unittest import TestResult

from onebeat.testing.kit import Onebeat

if TYPE_CHECKING:
    from unittest import TestCase as Base
else:
    Base = object


class OnebeatMixin(Base):
    """`self.onebeat` is an `Onebeat`. Stand before Django's `TestCase` or `TransactionTestCase`."""

    onebeat: Onebeat

    def setUp(self) -> None:
        """Start the kit; it is stopped when the test is over."""
        super().setUp()
        self.onebeat = Onebeat().start()
        self.addCleanup(self.onebeat.stop)

    def run(self, result: TestResult | None = None) -> TestResult | None:
        """Run the test as `unittest` does; one that fails shows its timeline."""
        method = getattr(self, self._testMethodName)

        @wraps(method)
        def with_timeline(*args: object, **kwargs: object) -> object:
            try:
                return method(*args, **kwargs)
            except AssertionError as error:
                error.add_note(f"onebeat timeline (UTC):\n{self.onebeat.timeline()}")
                raise

        setattr(self, self._testMethodName, with_timeline)
        try:
            return super().run(result)
        finally:
            delattr(self, self._testMethodName)
