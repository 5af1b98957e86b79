"""`python -m onebeat next` as people run it: another process, no Django."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SRC = str(Path(__file__).parents[1] / "src")
#: Runs the module and says afterwards whether Django or Celery came along.
PROGRAM = f"""
import runpy, sys
sys.path.insert(0, {SRC!r})
try:
    runpy.run_module("onebeat", run_name="__main__", alter_sys=True)
finally:
    heavy = {{"django", "celery", "kombu"}} & set(sys.modules)
    if heavy:
        print("imported", heavy, file=sys.stderr)
"""


def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)


def test_json() -> None:
    done = run(
        "next", "--cron", "0 9 * * 1-5", "--tz", "Europe/Paris", "--after", "2026-03-28T00:00:00Z", "--count", "3",
        "--json",
    )  # fmt: skip
    assert json.loads(done.stdout) == {"next": ["2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z", "2026-04-01T07:00:00Z"]}
    assert (done.returncode, done.stderr) == (0, "")


def test_every_and_its_anchor() -> None:
    words = (
        "next",
        "--every",
        "10 minutes",
        "--anchor",
        "2026-01-01T00:05:00+01:00",
        "--after",
        "2026-01-01T00:00:00Z",
    )
    done = run(*words, "--count", "2", "--json")
    assert json.loads(done.stdout) == {"next": ["2026-01-01T00:05:00Z", "2026-01-01T00:15:00Z"]}
    assert json.loads(run("next", "--every", "1 day", *words[5:], "--count", "1", "--json").stdout) == {
        "next": ["2026-01-02T00:00:00Z"]
    }


def test_clocked_runs_out() -> None:
    words = ("next", "--clocked", "2026-01-01T00:00:00.5Z", "--after")
    assert json.loads(run(*words, "2025-01-01T00:00:00Z", "--json").stdout) == {"next": ["2026-01-01T00:00:00.500000Z"]}
    assert "no run follows" in run(*words, "2027-01-01T00:00:00Z").stdout


def test_solar() -> None:
    pytest.importorskip("ephem")
    done = run("next", "--solar", "sunrise", "--lat", "69.6492", "--lon", "18.9553", "--after", "2026-06-01T00:00:00Z",
               "--count", "1", "--json")  # fmt: skip
    assert json.loads(done.stdout)["next"][0].startswith("2026-07-2")


def test_a_page_for_people() -> None:
    done = run(
        "next", "--cron", "30 2 * * *", "--tz", "america/new_york", "--after", "2026-03-07T12:00:00Z", "--count", "1"
    )
    assert done.stdout.splitlines() == [
        "at 02:30 (America/New_York)",
        "  Sun 2026-03-08 03:00:00 EDT  2026-03-08T07:00:00Z  in 19 h  (02:30 does not exist that day: runs at 03:00)",
    ]
    assert done.stderr == ""


def test_now_is_the_default() -> None:
    done = run("next", "--cron", "* * * * *", "--json")
    assert len(json.loads(done.stdout)["next"]) == 5


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--cron", "61 * * * *"), "minute: '61' is not accepted"),
        (("--cron", "0 0 31 2 *"), "day_of_month: '31' is not accepted"),
        (("--cron", "0 0"), "cron: '0 0' is not accepted: five fields"),
        (("--cron", "* * * * *", "--tz", "Mars"), "timezone: 'Mars' is not accepted"),
        (("--cron", "* * * * *", "--after", "yesterday"), "--after: 'yesterday' is not accepted"),
        (("--cron", "* * * * *", "--after", "2026-01-01T00:00:00"), "--after: '2026-01-01T00:00:00' is not accepted"),
        (("--every", "0 minutes"), "every: '0' is not accepted"),
        (("--every", "soon"), "every: 'soon' is not accepted"),
        (("--every", "1 fortnight"), "period: 'fortnights' is not accepted"),
        (("--clocked", "noon"), "--clocked: 'noon' is not accepted"),
        (("--solar", "sunrise", "--lat", "91", "--lon", "0"), "latitude: '91' is not accepted"),
        (("--solar", "sunrise", "--lat", "1"), "longitude: --solar needs"),
        (("--from-file", "/none/such"), "[Errno 2] No such file"),
    ],
)
def test_a_bad_rule_is_one_line_and_exit_2(words: tuple[str, ...], line: str) -> None:
    done = run("next", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_many_rules_from_a_file() -> None:
    text = (
        '# rules\n\n0 9 * * mon, fri Europe/Paris\n--every "1 day"\n61 * * * *\n--nonsense\n* * * * * Mars\n--cron "\n'
    )
    done = run("next", "--from-file", "-", "--after", "2026-03-07T00:00:00Z", "--count", "1", "--json", text=text)
    rules = json.loads(done.stdout)["rules"]
    assert [rule["line"] for rule in rules] == [3, 4, 5, 6, 7, 8]
    assert rules[0]["next"] == ["2026-03-09T08:00:00Z"]
    assert rules[1]["next"] == ["2026-03-08T00:00:00Z"]
    assert [rule["error"].split(":")[0] for rule in rules[2:]] == ["minute", "rule", "timezone", "rule"]
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["line 5", "line 6", "line 7", "line 8"]
