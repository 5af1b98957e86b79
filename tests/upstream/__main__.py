"""Runs django-celery-beat's own unit tests with onebeat in its place.

    python -m tests.upstream [VERSION ...]        2.9.0 and the newest release, unless others are named
    python -m tests.upstream 2.9.0 -- -k admin -x    the rest goes to pytest, and nothing is compared

The tests come from the source distribution on the package index. They are unpacked into a folder of the system's
temporary directory, which is kept for the next time, and none of them is part of this repository. expected.toml names
the tests that fail, each with the reason in our own words. The run fails for a test that fails and is not named there,
and for one that is named and passes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests import services
from tests.processes import ROOT

HERE = Path(__file__).parent
#: The release whose names onebeat keeps.
KEPT = "2.9.0"
#: The newest release, whichever that is.
NEWEST = ""
DATABASES = ("sqlite", "postgresql")
#: At most this part of the tests may be expected to fail.
SHARE = 1 / 5
#: Their tests ask for a pytest that lets marks stand on fixtures.
PYTEST = ("pytest>=8,<9", "pytest-django>=4.5.2,<5", "pytest-timeout", "iniconfig", "pluggy")
CACHE = Path(tempfile.gettempdir(), f"onebeat-upstream-{os.getuid()}")


@dataclass(frozen=True)
class Run:
    """One run of the whole suite: the tests that passed and those that did not."""

    version: str
    database: str
    passed: frozenset[str]
    failed: frozenset[str]
    output: str


def _pip(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pip {' '.join(arguments)}: {done.stderr[-1000:]}")


def own_pytest() -> Path:
    """A folder with the pytest that their tests ask for."""
    folder = CACHE / f"pytest-{sys.version_info.major}.{sys.version_info.minor}"
    if not folder.exists():
        part = tempfile.mkdtemp(dir=CACHE)
        _pip("install", "--quiet", "--no-deps", "--target", part, *PYTEST)
        Path(part).rename(folder)
    return folder


def sources(version: str) -> tuple[str, Path]:
    """The version and the folder of its unit tests. `version` "" is the newest release."""
    folder = CACHE / version
    if version and folder.exists():
        return version, folder
    with tempfile.TemporaryDirectory(dir=CACHE) as part:
        named = f"django-celery-beat=={version}" if version else "django-celery-beat"
        _pip("download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", part, named)
        (archive,) = Path(part).glob("*.tar.gz")
        found = re.fullmatch(r"django[_-]celery[_-]beat-(.+)\.tar\.gz", archive.name)
        assert found is not None, archive.name
        folder = CACHE / found[1]
        if not folder.exists():
            with tarfile.open(archive) as members:
                members.extractall(part, filter="data")
            # The tests alone: the package itself must not be there to be imported.
            (tests,) = Path(part).glob("*/t")
            target = Path(tempfile.mkdtemp(dir=CACHE))
            tests.rename(target / "t")
            target.rename(folder)
        return found[1], folder


def _command(folder: Path, database: str) -> tuple[list[str], dict[str, str]]:
    paths = os.pathsep.join(map(str, (own_pytest(), folder, ROOT)))
    env = {**os.environ, "PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": "tests.upstream.settings"}
    env |= {"ONEBEAT_TEST_DB": database, "PYTEST_ADDOPTS": ""}
    pytest = [sys.executable, "-m", "pytest", "-c", str(HERE / "pytest.ini"), "--rootdir", str(folder)]
    return [*pytest, "-p", "no:cacheprovider", str(folder / "t" / "unit")], env


def run(version: str, folder: Path, database: str) -> Run:
    """Run the suite of this version on this database."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command, env = _command(folder, database)
        command += [f"--deselect=t/unit/{name}" for name in _listed()["not run"]]
        command += ["-q", "--tb=short", "--timeout", "60", "--junitxml", report.name]
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{version} on {database}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
        cases = list(ElementTree.parse(report.name).getroot().iter("testcase"))
    failed = {_name(case) for case in cases if case.find("failure") is not None or case.find("error") is not None}
    skipped = {_name(case) for case in cases if case.find("skipped") is not None}
    passed = {_name(case) for case in cases} - failed - skipped
    return Run(version, database, frozenset(passed), frozenset(failed), done.stdout)


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').removeprefix('t.unit.')}.{case.get('name')}"


def _listed() -> dict[str, Any]:
    return tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))


def expected(version: str) -> dict[str, str]:
    """The tests of this version that fail, each with the reason."""
    listed = _listed()
    sections = listed, listed.get(version, {})
    return {name: why for section in sections for name, why in section.items() if isinstance(why, str)}


def unfounded(reasons: dict[str, str]) -> list[str]:
    """Reasons that are neither a private part nor a difference that a page of ours describes."""
    found = []
    for name, why in reasons.items():
        kind, _, what = why.partition(": ")
        page, _, anchor = what.partition("#")
        if kind == "documented difference" and anchor in _anchors(ROOT / page):
            continue
        if kind != "private part" or not what:
            found.append(f"has no reason that holds: {name}: {why}")
    return found


def _anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M) if page.is_file() else []
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def faults(result: Run) -> list[str]:
    """What is not as expected.toml says."""
    known = expected(result.version)
    left_out = len(_listed()["not run"])
    failed, total = len(result.failed) + left_out, len(result.passed) + len(result.failed) + left_out
    found = unfounded({**known, **_listed()["not run"]})
    found += [f"fails and is not expected to: {name}" for name in sorted(result.failed - known.keys())]
    found += [f"is expected to fail and does not: {name}" for name in sorted(known.keys() - result.failed)]
    if failed > total * SHARE:
        found.append(f"{failed} of {total} fail, more than one in {1 / SHARE:.0f}")
    return found


def main(arguments: list[str]) -> int:
    versions, _, more = (arguments, [], []) if "--" not in arguments else _split(arguments)
    CACHE.mkdir(exist_ok=True)
    chosen = dict(sources(version) for version in versions or (KEPT, NEWEST))
    if more:
        folder = next(iter(chosen.values()))
        command, env = _command(folder, os.environ.get("ONEBEAT_TEST_DB") or "sqlite")
        return subprocess.run([*command, *more], env=env, cwd=folder, check=False).returncode
    there = [database for database in DATABASES if database not in services.missing()]
    own_pytest()
    with ThreadPoolExecutor() as pool:
        jobs = [pool.submit(run, *each, database) for each in chosen.items() for database in there]
        runs = [job.result() for job in jobs]
    wrong = [(result, faults(result)) for result in runs]
    for result, found in wrong:
        if found:
            print(result.output, *found, sep="\n")
    for result, found in wrong:
        counted = f"{len(result.passed)} passed, {len(result.failed)} failed as expected" if not found else "FAILED"
        print(f"django-celery-beat {result.version} on {result.database}: {counted}")
    lacking = set(DATABASES) - set(there)
    if lacking:
        print(f"NOT RUN: {', '.join(sorted(lacking))}")
    return int(any(found for _, found in wrong) or bool(lacking and os.environ.get("CI")))


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    place = arguments.index("--")
    return arguments[:place], "--", arguments[place + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
