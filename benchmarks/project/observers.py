"""Who may look at each message: set up in a process by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery, Task, signals


def sentry(app: Celery) -> None:
    """`sentry_sdk` as most projects have it; nothing leaves this machine."""
    import sentry_sdk

    class Nowhere(sentry_sdk.transport.Transport):
        def capture_envelope(self, envelope: Any) -> None:
            """Drop it."""

    sentry_sdk.init(dsn="https://key@localhost/1", transport=Nowhere, traces_sample_rate=0.1)


def opentelemetry(app: Celery) -> None:
    """OpenTelemetry's instrumentation of Celery, its spans made and dropped."""
    from opentelemetry import trace
    from opentelemetry.instrumentation.celery import CeleryInstrumentor
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())
    CeleryInstrumentor().instrument()


def receiver(app: Celery) -> None:
    """A project's own receiver, which adds a header."""

    def stamp(headers: dict[str, Any], **kwargs: Any) -> None:
        headers["stamp"] = "1"

    signals.before_task_publish.connect(stamp, weak=False)


def override(app: Celery) -> None:
    """A base of tasks that adds a header in an `apply_async` of its own."""

    class Own(Task):  # type: ignore[type-arg]
        def apply_async(self, *args: Any, **options: Any) -> Any:
            options["headers"] = {**(options.get("headers") or {}), "stamp": "1"}
            return super().apply_async(*args, **options)

    task = app.tasks["benchmarks.nothing"]
    task.__class__ = type("Own", (Own, type(task)), {"__module__": __name__})


OBSERVERS: dict[str, Callable[[Celery], None]] = {
    "Sentry": sentry,
    "OpenTelemetry": opentelemetry,
    "a publish receiver": receiver,
    "an overridden apply_async": override,
}
