"""Where a client lives: an environment with what it needs, and beside it the two that take turns.

django-celery-beat is taken out of the environment into a folder of its own, at the version that pip chose for the
client, and onebeat is a wheel of this checkout in another. What a process finds is what its path names, so one
environment serves django-celery-beat, both, and onebeat alone.
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.clients.recipe import Recipe
from tests.databases import scratch_directory
from tests.processes import ROOT
from tests.takeover.releases import environments

WITH_EACH = ("django-celery-beat==2.9.0", "celery")


def run(*command: str) -> str:
    """Run it. Raises AssertionError with what it printed if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def python_of(recipe: Recipe) -> Path:
    """The Python of the client's environment. Raises `environments.NotHere` with pip's words."""
    packages = [*recipe.packages, *WITH_EACH, *(["psycopg[binary]"] if recipe.database == "postgresql" else [])]
    digest = hashlib.sha256(f"{sys.version}{packages}".encode()).hexdigest()[:12]
    base = environments.interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert base is not None
    return environments.environment(f"client-{recipe.name}-{digest}", base, packages, [])


def old_one(python: Path) -> Path:
    """The folder with django-celery-beat alone, which this environment no longer has."""
    folder = python.parent.parent / "django-celery-beat"
    with environments.locked(folder):
        if not folder.exists():
            package = next(one for one in WITH_EACH if one.startswith("django-celery-beat"))
            run(str(python), *environments.PIP, "--no-deps", "--target", f"{folder}.part", package)
            run(str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "django-celery-beat")
            Path(f"{folder}.part").rename(folder)
    return folder


@functools.cache
def new_one() -> Path:
    """The folder with onebeat alone, as a wheel of this checkout gives it; made once for each run."""
    folder = scratch_directory() / "wheel"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, *environments.PIP, "--no-deps", "--target", str(folder / "onebeat"), str(wheel))
    return folder / "onebeat"


def sources(recipe: Recipe, folder: Path) -> Path:
    """The client's source distribution, unpacked in the folder."""
    pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder))
    run(*pip, recipe.packages[0])
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    archive.unlink()
    (unpacked,) = folder.iterdir()
    return unpacked
