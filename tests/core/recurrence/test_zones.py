"""Zones by name, and the version of their rules."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, timedelta, timezone, tzinfo
from importlib import import_module
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from onebeat.core.recurrence import Cron, InvalidSchedule, zone, zones
from tests.core.walking import at


@pytest.mark.parametrize(
    "name", ["Europe/Paris", "europe/paris", "EUROPE/PARIS", " Europe/Paris ", ZoneInfo("Europe/Paris")]
)
def test_letter_case_is_folded_to_the_iana_spelling(name: str | tzinfo) -> None:
    assert zone(name).key == "Europe/Paris"
    assert zone(name) is zone("Europe/Paris")


def test_utc_by_any_object() -> None:
    assert zone(UTC).key == zone(timezone.utc).key == zone("utc").key == "UTC"  # noqa: UP017


def test_a_pytz_zone_is_known_by_its_name() -> None:
    class Old(tzinfo):
        zone = "Asia/Tokyo"

    assert zone(Old()).key == "Asia/Tokyo"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Mars/Olympus",
        "../UTC",
        "/etc/passwd",
        "posix/UTC",
        "localtime",
        "\0",
        5,
        None,
        timezone(timedelta(hours=1)),
    ],
)
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        zone(name)
    assert caught.value.field == "timezone"


def test_a_near_miss_is_named() -> None:
    with pytest.raises(InvalidSchedule, match="did you mean Europe/Paris"):
        Cron(tz="Europe/Pariss")


def test_the_transition_of_a_gap_and_of_a_repeat() -> None:
    new_york = zone("America/New_York")
    for wall, instant in (
        ("2026-03-08T02:00", "2026-03-08T07:00"),
        ("2026-03-08T02:59:59.999", "2026-03-08T07:00"),
        ("2026-11-01T01:00", "2026-11-01T06:00"),
        ("2026-11-01T01:59:59.999", "2026-11-01T06:00"),
    ):
        for fold in (0, 1):
            assert zones.transition(at(wall).replace(tzinfo=new_york, fold=fold)) == at(instant)


def version() -> str:
    zones.tzdata_version.cache_clear()
    return zones.tzdata_version()


def test_the_version_is_that_of_the_data_zoneinfo_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The plan is made again when this text changes, so it must follow the data: system first, package otherwise."""
    try:
        monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"),))
        assert version() == import_module("tzdata").IANA_VERSION
        system = tmp_path / "system"
        (system / "Europe").mkdir(parents=True)
        monkeypatch.setattr(zoneinfo, "TZPATH", (str(tmp_path / "none"), str(system)))
        assert version() == "unknown"
        (system / "tzdata.zi").write_text("# version 2031a\nR d 1916 o - Jun 14 23s 1 S\n")
        assert version() == "2031a"
        (system / "+VERSION").write_text("2031b\n")
        assert version() == "2031b"
    finally:
        zones.tzdata_version.cache_clear()


def test_other_rules_of_a_zone_give_other_plans(tmp_path: Path) -> None:
    """What a new tzdata does to a plan: the same rule and instant, another answer."""
    source = next(Path(place) for place in zoneinfo.TZPATH if (Path(place) / "Asia" / "Tokyo").is_file())
    with (source / "Asia" / "Tokyo").open("rb") as file:
        moved = ZoneInfo.from_file(file, key="Europe/Paris")
    rule = Cron.parse("0 9 * * *", "Europe/Paris")
    assert rule.after(at("2026-01-01")) == at("2026-01-01T08:00")
    object.__setattr__(rule, "tz", moved)
    assert rule.after(at("2026-01-01")) == at("2026-01-02T00:00")
