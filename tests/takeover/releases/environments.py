"""Environments with the real django-celery-beat of several releases, from PyPI, kept for the next session.

They lie outside the tree, in ONEBEAT_TEST_ENVIRONMENTS or the user's cache, each under a name made of what is in it:
another set of packages is another environment. A release needs a Python and packages of its time; the first Python of
its list that is found here is taken.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

#: What every one has: clients of the databases and of Redis, the sun, and a clock that can be set.
COMMON = ("celery[redis]", "ephem", "psycopg2-binary", "setuptools<81", "time-machine", "tzdata")
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
OLD_DJANGO = 'django==3.1.*; python_version < "3.10"', 'django==3.2.*; python_version >= "3.10"'


class NotHere(Exception):
    """This release cannot be had on this machine; the message says why."""


@dataclass(frozen=True)
class Release:
    """A release of django-celery-beat, what is installed with it, and the Pythons that it may have, best first."""

    name: str
    packages: tuple[str, ...]
    pythons: tuple[str, ...]
    #: The last of its migrations.
    migration: str


RELEASES = {
    one.name: one
    for one in (
        Release(
            "2.0",
            ("django-celery-beat==2.0.0", *OLD_DJANGO, 'celery==4.4.*; python_version < "3.9"'),
            ("3.8", "3.9", "3.10", "3.11"),
            "0012_periodictask_expire_seconds",
        ),
        Release(
            "2.2",
            ("django-celery-beat==2.2.0", *OLD_DJANGO, 'celery==5.0.*; python_version < "3.10"'),
            ("3.8", "3.9", "3.10", "3.11"),
            "0015_edit_solarschedule_events_choices",
        ),
        Release(
            "2.5",
            ("django-celery-beat==2.5.0", "django==4.2.*"),
            ("3.11", "3.10", "3.12"),
            "0018_improve_crontab_helptext",
        ),
        Release(
            "2.9",
            ("django-celery-beat==2.9.0",),
            ("3.11", "3.12", "3.13"),
            "0019_alter_periodictasks_options",
        ),
    )
}


@functools.cache
def python_of(release: str) -> str:
    """The Python of the release's environment, which is built if it is not there. Raises `NotHere` with the reason."""
    one = RELEASES[release]
    base = next(filter(None, map(interpreter, one.pythons)), None)
    if base is None:
        raise NotHere(f"django-celery-beat {release} needs Python {' or '.join(one.pythons)}, and none is here")
    packages = [*one.packages, *COMMON]
    found = subprocess.run([base, "--version"], capture_output=True, text=True, check=True).stdout
    digest = hashlib.sha256(f"{found}{packages}".encode()).hexdigest()[:12]
    return str(environment(f"django-celery-beat-{release}-{digest}", base, packages, ["mysqlclient"]))


def beside(packages: list[str]) -> str:
    """A folder with these packages alone for the Python that runs this, to be put on its path."""
    digest = hashlib.sha256(f"{sys.version}{packages}".encode()).hexdigest()[:12]
    folder = home() / f"beside-{digest}"
    with locked(folder):
        if not (folder / "built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, *PIP, "--no-deps", "--target", str(folder), *packages])
            (folder / "built").touch()
    return str(folder)


def home() -> Path:
    """Where all of them lie."""
    path = Path(os.environ.get("ONEBEAT_TEST_ENVIRONMENTS") or Path.home() / ".cache/onebeat-tests")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One at a time: other sessions and xdist's workers want the same one."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHere(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-600:]}")


def _installed(python: str, packages: list[str], tries: int = 3) -> None:
    """Install these packages; an index may break a connection off in the middle of one."""
    for left in reversed(range(tries)):
        try:
            _run([python, *PIP, *packages])
            return
        except NotHere:
            if not left:
                raise


def environment(name: str, base: str, packages: list[str], if_possible: list[str]) -> Path:
    """The Python of the environment of this name, built with the packages if it is not there. Those in `if_possible`
    may fail to install. Raises `NotHere` with the end of pip's own words.
    """
    folder = home() / name
    python, done = str(folder / "bin/python"), folder / "built"
    with locked(folder):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([base, "-m", "venv", str(folder)])
            _installed(python, packages)
            for package in if_possible:
                with suppress(NotHere):
                    _run([python, *PIP, package])
            done.touch()
    return folder / "bin/python"


def interpreter(version: str) -> str | None:
    """A working Python of this version. A name on PATH may be a shim for one that is not active."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        # Not the one of our environment: what is made from it would find its way back here.
        return os.path.realpath(sys.executable)
    places = [shutil.which(f"python{version}")]
    for place in (".pyenv/versions", ".local/share/uv/python"):
        places += [str(path) for path in sorted((Path.home() / place).glob(f"*{version}.*/bin/python{version}"))]
    for path in filter(None, places):
        if subprocess.run([path, "-c", "import venv, ensurepip"], capture_output=True, check=False).returncode == 0:
            return path
    return None
