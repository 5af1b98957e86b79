"""Figures for Prometheus, read from the database at each scrape. Needs `pip install 'onebeat[prometheus]'`.

As a page of the project, for whatever may reach it:

    path("onebeat/metrics", onebeat.contrib.prometheus.metrics)

or among a process's other metrics: `onebeat.contrib.prometheus.register()`, once. Each
figure has the label `database`; those
that count have `scheduler` as well, which is one process: sum their `rate()`, not the counts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from django.db import Error, connections, router
from django.http import HttpRequest, HttpResponse

from onebeat.db import lost_connections, schema
from onebeat.models import TaskState
from onebeat.queries import health

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
except ImportError as error:
    raise ImportError("prometheus-client is needed: pip install 'onebeat[prometheus]'") from error

logger = logging.getLogger("onebeat")

#: Each gauge with its key among the figures of `onebeat health`.
_GAUGES = {
    "onebeat_healthy": ("healthy", "1 if a scheduler is able to send and the oldest due task is not late"),
    "onebeat_schedulers": ("schedulers", "Schedulers at work"),
    "onebeat_schedulers_able": ("able", "Schedulers at work that their broker answers"),
    "onebeat_lag_seconds": ("lag_seconds", "How late the oldest due task is"),
    "onebeat_due_tasks": ("due", "Tasks that are due and not claimed yet"),
    "onebeat_quarantined_tasks": ("quarantined", "Tasks that are quarantined because they cannot be planned or sent"),
    "onebeat_clock_skew_seconds": ("largest_skew_ms", "The largest difference of a scheduler's clock"),
    "onebeat_paused": ("paused", "1 while everything is paused"),
}
_ANSWERS = "onebeat_database_up", "1 if the database answers and is migrated; if not, the other figures are missing"
_SENT = "onebeat_sent", "Messages that the broker has"
_FAILED = "onebeat_failed_publishes", "Messages that could not be handed over, each try counted"
_SKIPPED = "onebeat_skipped", "Times that were not sent; a range of them counts as one"


class Collector:
    """The figures of these databases (by alias; none: where the router puts the tasks). A database that fails is
    reported as such and never fails the scrape.
    """

    def __init__(self, *databases: str) -> None:
        self._databases = databases

    def describe(self) -> list[Metric]:
        """The names alone, without a look at the database."""
        return self._families([])

    def collect(self) -> list[Metric]:
        """What the figures are now."""
        return self._families(self._databases or [router.db_for_read(TaskState)])

    def _families(self, databases: Sequence[str]) -> list[Metric]:
        answers = GaugeMetricFamily(*_ANSWERS, labels=["database"])
        gauges = {name: GaugeMetricFamily(name, text, labels=["database"]) for name, (_, text) in _GAUGES.items()}
        counted = ["database", "scheduler"]
        sent, failed = (CounterMetricFamily(*named, labels=counted) for named in (_SENT, _FAILED))
        skipped = CounterMetricFamily(*_SKIPPED, labels=[*counted, "reason"])
        for using in databases:
            try:
                figures, counters = _ask(using)
            except Error as error:
                logger.warning("no figures from the database %r: %s", using, error)
                answers.add_metric([using], 0)
                continue
            answers.add_metric([using], figures is not None)
            for name, value in _values(figures or {}):
                gauges[name].add_metric([using], value)
            for counter in counters:
                sent.add_metric([using, counter.scheduler], counter.sent)
                failed.add_metric([using, counter.scheduler], counter.failed)
                for reason, count in counter.skipped.items():
                    skipped.add_metric([using, counter.scheduler, reason], count)
        return [answers, *gauges.values(), sent, failed, skipped]


def _values(figures: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    for name, (key, _) in _GAUGES.items():
        if key in figures:
            value = figures[key]
            number = float(value) if isinstance(value, int | float) else float(bool(value))
            yield name, number / 1000 if key.endswith("_ms") else number


def _ask(using: str) -> tuple[health.Health | None, list[health.Counters]]:
    """The figures, and the counts of each scheduler. None where `migrate` has not been."""
    link = connections[using]
    # In a thread of its own nobody else looks after the connection.
    link.close_if_unusable_or_obsolete()
    try:
        with lost_connections.django_errors(using):
            if not schema.complete(using):
                return None, []
            return health.health(using), health.counters(using)
    finally:
        link.close_if_unusable_or_obsolete()


def register(*databases: str, registry: CollectorRegistry = REGISTRY) -> Collector:
    """Add the figures of these databases to a registry, by default to the process's own. Call it once."""
    collector = Collector(*databases)
    registry.register(collector)
    return collector


def metrics(request: HttpRequest) -> HttpResponse:
    """A view with the figures of onebeat alone. It asks nobody who they are: keep it from the outside."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector())
    encoder, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encoder(registry), content_type=content_type)
