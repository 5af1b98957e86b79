"""How long the next instant of a crontab takes, beside Celery, croniter, cronsim and crondst, in one run.

    python benchmarks/recurrence.py [--json]

Each cell is the median over rounds of the mean time of one answer, in microseconds. The rounds of the libraries take
turns, so that a busy machine is busy for all of them. A library that is not installed is left out; a dash is a rule
that it does not have or cannot answer. cronsim has no object to ask again, so its time holds the parsing of the rule
too. To cronsim and crondst two day fields mean "or", so that "29 February on a Monday" is an easier question there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from onebeat.core import nominal_times
from onebeat.core.recurrence import Cron

RULES = {
    "every minute": "* * * * *",
    "every 5 minutes": "*/5 * * * *",
    "every hour": "0 * * * *",
    "weekdays at 9": "0 9 * * 1-5",
    "day 1 at 2:30": "30 2 1 * *",
    "last day of the month": "0 6 L * *",
    "29 February": "0 0 29 2 *",
    "29 February on a Monday": "0 0 29 2 1",
}
ZONES = ("UTC", "America/New_York")
START = datetime(2026, 3, 1, 12, 34, 56, tzinfo=UTC)
ROUNDS = 7
ROUND_SECONDS = 0.02
PLANS = 100_000

Ask = Callable[[datetime], object]


def _onebeat(rule: str, zone: str) -> Ask:
    return Cron.parse(rule, zone).after


def _celery(rule: str, zone: str) -> Ask:
    from celery.schedules import crontab

    minute, hour, day_of_month, month_of_year, day_of_week = rule.split()
    tz = ZoneInfo(zone)
    moment = START
    schedule = crontab(minute, hour, day_of_week, day_of_month, month_of_year, nowfun=lambda: moment)

    def ask(instant: datetime) -> object:
        nonlocal moment
        moment = instant
        start, delta, _ = schedule.remaining_delta(instant, tz=tz)
        return (start + delta).astimezone(UTC)

    return ask


def _croniter(rule: str, zone: str) -> Ask:
    from croniter import croniter

    tz = ZoneInfo(zone)
    schedule = croniter(rule, START.astimezone(tz), day_or=False)
    return lambda instant: schedule.get_next(datetime, start_time=instant.astimezone(tz)).astimezone(UTC)


def _cronsim(rule: str, zone: str) -> Ask:
    from cronsim import CronSim

    tz = ZoneInfo(zone)
    return lambda instant: next(CronSim(rule, instant.astimezone(tz))).astimezone(UTC)


def _crondst(rule: str, zone: str) -> Ask:
    from crondst import CronDst

    tz = ZoneInfo(zone)
    schedule = CronDst(rule)
    return lambda instant: next(schedule.iter(instant.astimezone(tz))).astimezone(UTC)


LIBRARIES = {"onebeat": _onebeat, "celery": _celery, "croniter": _croniter, "cronsim": _cronsim, "crondst": _crondst}


def _round(ask: Ask) -> float:
    """The mean time of one answer, in microseconds, over instants that lie some hours apart."""
    instant, asked = START, 0
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < ROUND_SECONDS or not asked:
        for _ in range(10):
            ask(instant)
            instant += timedelta(hours=7, minutes=13)
        asked += 10
    return spent / asked * 1e6


def _answer(make: Callable[[str, str], Ask], rule: str, zone: str) -> Ask | None:
    try:
        ask = make(rule, zone)
        ask(START)
    except Exception:  # not installed, or not in its grammar
        return None
    return ask


def measure() -> list[dict[str, object]]:
    """One row per zone and rule: the microseconds of each library, None where it has no answer."""
    rows: list[dict[str, object]] = []
    for zone in ZONES:
        for name, rule in RULES.items():
            asks = {library: _answer(make, rule, zone) for library, make in LIBRARIES.items()}
            times: dict[str, list[float]] = {library: [] for library in asks}
            for _ in range(ROUNDS):
                for library, ask in asks.items():
                    if ask is not None:
                        times[library].append(_round(ask))
            medians = {library: round(statistics.median(t), 2) if t else None for library, t in times.items()}
            rows.append({"zone": zone, "rule": name, **medians})
    return rows


def plans_per_minute() -> int:
    """Rules made from their five texts and planned, one after another, as a sweep over many rows does it."""
    texts = [(str(n % 60), str(n % 24), "*", "*", "1-5" if n % 3 else "*", ZONES[n % 2]) for n in range(PLANS)]
    start = time.perf_counter()
    for minute, hour, day_of_month, month_of_year, day_of_week, zone in texts:
        nominal_times.first(Cron(minute, hour, day_of_month, month_of_year, day_of_week, zone), START)
    return round(PLANS / (time.perf_counter() - start) * 60)


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description="the next instant of a crontab, side by side")
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    rows, plans = measure(), plans_per_minute()
    if as_json:
        print(json.dumps({"microseconds": rows, "plans_per_minute": plans}, indent=1))
        return
    print(f"{'zone':18}{'rule':25}" + "".join(f"{library:>10}" for library in LIBRARIES))
    for row in rows:
        cells = "".join(f"{row[library] or '-':>10}" for library in LIBRARIES)
        print(f"{row['zone']:18}{row['rule']:25}{cells}")
    print(f"plans per minute: {plans:,}")


if __name__ == "__main__":
    main()
