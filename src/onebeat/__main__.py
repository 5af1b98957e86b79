"""`python -m onebeat next`: the next runs of a rule, without Django."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NoReturn

from onebeat.core.clock import host_now
from onebeat.core.describe import describe, note
from onebeat.core.recurrence import EVENTS, UNITS, Clocked, Cron, Interval, Recurrence, Solar
from onebeat.core.recurrence.base import utc
from onebeat.errors import InvalidSchedule

_SPANS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line. Returns the exit status: 0, or 2 when a rule is bad, with one line on stderr for each."""
    options = _parser().parse_args(argv)
    try:
        after = _instant("--after", options.after) if options.after else host_now()
        if options.from_file:
            return _file(options.from_file, after, options)
        rule = _recurrence(options, after)
    except (InvalidSchedule, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    runs = _runs(rule, after, options.count)
    print(json.dumps({"next": [_z(run) for run in runs]}) if options.json else _page(rule, runs, after))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m onebeat", description="onebeat without Django")
    command = parser.add_subparsers(dest="command", required=True).add_parser("next", help="the next runs of a rule")
    _add_rule(command)
    command.add_argument("--after", metavar="T", help="instants strictly after this one (default: now)")
    command.add_argument("--count", type=_count, default=5, metavar="N", help="how many (default: 5)")
    command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _add_rule(parser: argparse.ArgumentParser) -> None:
    rule = parser.add_mutually_exclusive_group(required=True)
    rule.add_argument("--cron", metavar='"M H D M W"', help="a crontab of five fields")
    rule.add_argument("--every", metavar='"10 minutes"', help=f"a number and one of {', '.join(UNITS)}")
    rule.add_argument("--clocked", metavar="T", help="one instant")
    rule.add_argument("--solar", metavar="EVENT", help=f"one of {', '.join(EVENTS)}")
    rule.add_argument(
        "--from-file",
        metavar="FILE",
        help="a rule a line: these options, or a crontab and a zone (-: stdin)",
    )
    parser.add_argument("--tz", default="UTC", metavar="ZONE", help="the IANA zone of a crontab (default: UTC)")
    parser.add_argument("--anchor", metavar="T", help="where the grid of --every starts (default: --after)")
    parser.add_argument("--lat", metavar="DEGREES", help="latitude for --solar, north is positive")
    parser.add_argument("--lon", metavar="DEGREES", help="longitude for --solar, east is positive")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _recurrence(options: argparse.Namespace, after: datetime) -> Recurrence:
    if options.cron is not None:
        return Cron.parse(options.cron, options.tz)
    if options.clocked is not None:
        return Clocked(_instant("--clocked", options.clocked))
    if options.every is not None:
        found = re.fullmatch(r"\s*(\d{1,18})\s+([a-z]+?)s?\s*", options.every)
        if not found:
            raise InvalidSchedule("every", options.every, f"a number and one of {', '.join(UNITS)} are needed")
        anchor = _instant("--anchor", options.anchor) if options.anchor else after
        return Interval.of(int(found[1]), found[2] + "s", anchor)
    if options.lat is None or options.lon is None:
        raise InvalidSchedule("latitude" if options.lat is None else "longitude", None, "--solar needs --lat and --lon")
    return Solar(options.solar, options.lat, options.lon)


def _instant(option: str, text: str) -> datetime:
    try:
        return utc(datetime.fromisoformat(text))
    except ValueError:
        why = "an ISO 8601 instant with its offset is needed, such as 2026-03-28T00:00:00Z"
        raise InvalidSchedule(option, text, why) from None


def _runs(rule: Recurrence, after: datetime, count: int) -> list[datetime]:
    runs: list[datetime] = []
    found = rule.after(after)
    while found is not None and len(runs) < count:
        runs.append(found)
        found = rule.after(found)
    return runs


def _z(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _page(rule: Recurrence, runs: list[datetime], after: datetime) -> str:
    lines = [describe(rule)]
    for run in runs:
        line = f"  {_z(run)}  in {_span(run - after)}"
        if isinstance(rule, Cron):
            line = f"  {run.astimezone(rule.tz):%a %Y-%m-%d %H:%M:%S %Z}{line}"
            if remark := note(rule, run):
                line += f"  ({remark})"
        lines.append(line)
    return "\n".join(lines if runs else [*lines, "  no run follows"])


def _span(gap: timedelta) -> str:
    left, words = round(gap.total_seconds()), []
    for seconds, unit in _SPANS:
        n, left = divmod(left, seconds)
        if n:
            words.append(f"{n} {unit}")
    return " ".join(words[:2]) or "less than 1 s"


class _LineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidSchedule("rule", None, message)


def _file(name: str, after: datetime, options: argparse.Namespace) -> int:
    """The rules of a file. A bad one is one line on stderr with its line number; the others are answered all the
    same.
    """
    text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    parser = _LineParser(prog="rule", add_help=False)
    _add_rule(parser)
    answers: list[dict[str, object]] = []
    status = 0
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            rule = _recurrence(parser.parse_args(_words(line)), after)
        except InvalidSchedule as error:
            print(f"line {number}: {error}", file=sys.stderr)
            answers.append({"line": number, "rule": line, "error": str(error)})
            status = 2
            continue
        runs = _runs(rule, after, options.count)
        answers.append({"line": number, "rule": line, "next": [_z(run) for run in runs]})
        if not options.json:
            print(f"{line}: {_page(rule, runs, after)}")
    if options.json:
        print(json.dumps({"rules": answers}))
    return status


def _words(line: str) -> list[str]:
    """A line of a file as command-line words. Five fields, and a zone after them if there is one, are a crontab."""
    if line.startswith("-"):
        try:
            return shlex.split(line)
        except ValueError as error:
            raise InvalidSchedule("rule", line, str(error)) from None
    fields = re.sub(r"\s*,\s*", ",", line).split()
    return [f"--cron={' '.join(fields[:5])}", *(f"--tz={zone}" for zone in fields[5:])]


if __name__ == "__main__":
    sys.exit(main())
