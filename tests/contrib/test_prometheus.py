"""What Prometheus is told, and that each alert of the example fires when it should and not before."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client, override_settings
from django.urls import path
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import onebeat
from onebeat.contrib import prometheus
from onebeat.core import clock
from onebeat.core.headers import NAME_HEADER
from onebeat.dispatch.base import Accepted, Refused
from onebeat.models import Beat
from onebeat.store import events
from tests.engine.kit import START, Bench, at, every, options, set_task, sql, sweep, task
from tests.processes import ROOT

#: Of each name, the value by reason ("" for what has none).
Figures = dict[str, dict[str, float]]

urlpatterns = [path("metrics", prometheus.metrics)]
ALERTS = dict(re.findall(r"alert: (\w+)\n +expr: (.+)\n", (ROOT / "docs/alerts.yml").read_text()))


def scrape() -> Figures:
    with override_settings(ROOT_URLCONF=__name__):
        answer = Client().get("/metrics")
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/plain")
    found: Figures = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for one in family.samples:
            assert one.labels["database"] == "default"
            found.setdefault(one.name, {})[one.labels.get("reason", "")] = one.value
    return found


def refuse(bench: Bench, name: str) -> None:
    """The broker takes what it gets, but not this task."""
    bench.outbox.answer = lambda one: Refused("no") if one.options["headers"][NAME_HEADER] == name else Accepted()


def test_the_figures(bench: Bench) -> None:
    options(task("paused", interval=every(10)), paused=True)
    task("refused", interval=every(10))
    task("good", interval=every(10))
    refuse(bench, "refused")
    bench.work(23)
    found = scrape()
    assert found.pop("onebeat_skipped_total") == {"paused": 2, "refused": 2}
    assert {name: values[""] for name, values in found.items()} == {
        "onebeat_database_up": 1, "onebeat_healthy": 1, "onebeat_schedulers": 1, "onebeat_schedulers_able": 1,
        "onebeat_lag_seconds": 0, "onebeat_due_tasks": 0, "onebeat_quarantined_tasks": 0, "onebeat_paused": 0,
        "onebeat_clock_skew_seconds": 0, "onebeat_sent_total": 2, "onebeat_failed_publishes_total": 2,
    }  # fmt: skip


def test_the_counts_of_a_scheduler_outlive_it_for_a_while(bench: Bench) -> None:
    task(interval=every(10))
    bench.work(10)
    bench.engine.close()
    assert scrape()["onebeat_sent_total"] == {"": 1}
    clock.move(at(10 + 3601))
    assert "onebeat_sent_total" not in scrape()


def test_what_is_rolled_back_is_not_counted(bench: Bench) -> None:
    before = events.counted_since("default", {})
    with pytest.raises(DatabaseError), transaction.atomic():
        events.count("default", "paused")
        raise DatabaseError
    assert events.counted_since("default", before) == {}


def test_a_name_is_registered_once_and_without_a_look_at_the_database() -> None:
    registry = CollectorRegistry()
    prometheus.register(registry=registry)
    with pytest.raises(ValueError, match="onebeat_healthy"):
        prometheus.register("default", registry=registry)


# -- the alerts ------------------------------------------------------------------------------------------------------


def away(bench: Bench) -> None:
    bench.outbox.unavailable = True
    bench.work(40)


def refused(bench: Bench) -> None:
    refuse(bench, "t")
    bench.work(12)


def broken(bench: Bench) -> None:
    set_task(task("broken"), args="nonsense")
    sweep()
    bench.work(2)


def missed(bench: Bench) -> None:
    options(task("skips", interval=every(10)), missed="skip")
    bench.tick()
    bench.advance(600)
    bench.work(2)


#: What makes each alert fire, and the others that it takes along.
SITUATIONS: dict[str, tuple[Callable[[Bench], object], set[str]]] = {
    "OnebeatDatabaseAway": (lambda bench: sql("ALTER TABLE onebeat_beat RENAME TO onebeat_elsewhere"), set()),
    "OnebeatNoScheduler": (lambda bench: clock.move(clock.host_now() + (at(9) - START)), set()),
    "OnebeatBrokerAway": (away, {"OnebeatLate"}),
    "OnebeatLate": (away, {"OnebeatBrokerAway"}),
    "OnebeatQuarantine": (broken, set()),
    "OnebeatPublishesFail": (refused, set()),
    "OnebeatMissed": (missed, set()),
    "OnebeatClockSkew": (lambda bench: Beat.objects.update(skew_ms=-6000), set()),
    "OnebeatForgottenPause": (lambda bench: onebeat.pause(onebeat.ALL), set()),
}


def fires(rule: str, before: Figures, now: Figures) -> bool:
    """Whether an expression of the rules holds. Each name and reason in it must be one that is told."""
    return all(_holds(part, before, now) for part in rule.split(" and "))


def _holds(part: str, before: Figures, now: Figures) -> bool:
    found = re.fullmatch(r'(increase\()?(\w+)(?:\{reason="(\w+)"\})?(?:\[\w+\]\))? (==|>) (\d+)', part)
    assert found, f"the test does not know this kind of expression: {part}"
    grows, name, reason, sign, number = found.groups()
    assert name in NAMES, f"nothing is told of {name}"
    assert bool(grows) == name.endswith("_total"), f"{name} is asked for its growth, or is not"
    if name not in now or (reason or "") not in now[name]:
        return False
    value = now[name][reason or ""] - (before.get(name, {}).get(reason or "", 0) if grows else 0)
    return value == float(number) if sign == "==" else value > float(number)


NAMES = {
    f"{one.name}_total" if one.type == "counter" else one.name for one in prometheus.Collector("default").describe()
}


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_fires_when_it_should(bench: Bench, alert: str) -> None:
    make, others = SITUATIONS[alert]
    task("t", interval=every(10))
    bench.work(12)
    before = scrape()
    assert [name for name, rule in ALERTS.items() if fires(rule, {}, before)] == []
    try:
        make(bench)
        now = scrape()
    finally:
        if "onebeat_elsewhere" in connection.introspection.table_names():
            sql("ALTER TABLE onebeat_elsewhere RENAME TO onebeat_beat")
    assert {name for name, rule in ALERTS.items() if fires(rule, before, now)} == {alert, *others}


def test_every_rule_is_tried() -> None:
    assert ALERTS.keys() == SITUATIONS.keys()
