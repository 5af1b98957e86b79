"""The figures of the house: contract rows, circles, sizes, types left open, words that were given up.

    python -m tests.house

prints them (`make lint` does it) and ends with 1 if one is over its limit; tests/test_house.py asks each by itself.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
GLOSSARY = ROOT / "docs" / "glossary.md"

#: What is allowed at most. `LINES`, `OPEN_TYPES` and `GIVEN_UP` only ever go down.
CONTRACT_ROWS = 16
MODULES_IN_A_PACKAGE = 22
LINES_IN_A_FILE = 400
LINES = 27_652
OPEN_TYPES = 263
GIVEN_UP = 21
TERMS = 40

#: Where Celery and its libraries may be imported.
CELERY = ("celery", "kombu", "amqp")
CELERY_ROOMS = (
    "onebeat.dispatch.celery",
    "onebeat.celery",
    "onebeat.compat",
    "onebeat.importing",
    "onebeat.contrib.sentry",
)
#: The one place that brings in what is there for programs written for django-celery-beat.
COMPAT, START = "onebeat.compat", "onebeat.apps"


@dataclass(frozen=True)
class Import:
    """One module that a file imports, wherever in the file it does so."""

    name: str
    line: int


@dataclass(frozen=True)
class Module:
    """One file under src, but for the migrations, which keep what they were."""

    path: Path

    @cached_property
    def name(self) -> str:
        parts = self.path.relative_to(SRC).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> list[Import]:
        """Every import of the file: at its top, under TYPE_CHECKING and inside functions."""
        found: list[Import] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [Import(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                # `from package import module` is an import of the module; of anything else it is one of the package.
                modules = {name for name in names if name in by_name()}
                found += [Import(name, node.lineno) for name in modules]
                if len(modules) < len(names):
                    found.append(Import(node.module, node.lineno))
        return found


@cache
def modules() -> list[Module]:
    """Every module under src but the migrations."""
    return [Module(path) for path in sorted(SRC.rglob("*.py")) if "migrations" not in path.parts]


@cache
def by_name() -> dict[str, Module]:
    return {module.name: module for module in modules()}


def layers() -> list[list[str]]:
    """The rows of the contract that says which way imports point, each with the packages that it names."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [each for each in config["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    return [re.split(r"\s*[|:]\s*", row) for each in contracts for row in each["layers"]]


def unlisted() -> list[str]:
    """What stands at the top of onebeat and in no row of the contract."""
    rooms = {".".join(name.split(".")[:2]) for name in by_name()} - {"onebeat", "onebeat.__main__"}
    return sorted(rooms - {name for row in layers() for name in row})


def inside() -> list[str]:
    """Names in the contract that are not those of a whole room."""
    rooms = {*by_name(), *(f"onebeat.{path.name}" for path in (SRC / "onebeat").iterdir() if path.is_dir())}
    return [name for row in layers() for name in row if name.count(".") != 1 or name not in rooms]


def circles() -> list[list[str]]:
    """Files that import each other in a circle, whichever way: at the top, for types, or inside a function."""
    graph = {module.name: {each.name for each in module.imports} & by_name().keys() for module in modules()}
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:  # Tarjan's strongly connected components
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in graph[name]:
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            circle = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(circle) > 1 or name in graph[name]:
                found.append(sorted(circle))

    for name in graph:
        if name not in order:
            visit(name)
    return found


def _within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def celery_elsewhere() -> list[str]:
    """Imports of Celery outside the rooms that may know it."""
    return [
        f"{module.name}:{each.line} {each.name}"
        for module in modules()
        for each in module.imports
        if _within(each.name, CELERY) and not _within(module.name, CELERY_ROOMS)
    ]


def compat_elsewhere() -> list[str]:
    """Imports of `compat` by anything but itself and the app's start."""
    return [
        f"{module.name}:{each.line}"
        for module in modules()
        for each in module.imports
        if _within(each.name, (COMPAT,)) and not _within(module.name, (COMPAT, START))
    ]


def package_sizes() -> dict[str, int]:
    """How many modules each package has, `__init__` not counted."""
    sizes: dict[str, int] = {}
    for module in modules():
        if module.path.name != "__init__.py":
            sizes[module.package] = sizes.get(module.package, 0) + 1
    return sizes


def long_files() -> list[str]:
    return [f"{module.name}: {module.lines}" for module in modules() if module.lines > LINES_IN_A_FILE]


def lines() -> int:
    """Lines of Python under src, but for the migrations."""
    return sum(module.lines for module in modules())


def open_types() -> dict[str, int]:
    """How many lines of each module have `Any` in the annotation of an argument, a result or a variable."""
    found = {}
    for module in modules():
        said: set[int] = set()
        for node in ast.walk(module.tree):
            annotation: ast.AST | None = None
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                annotation = node.returns
            elif isinstance(node, ast.arg | ast.AnnAssign):
                annotation = node.annotation
            for part in ast.walk(annotation) if annotation else ():
                if (isinstance(part, ast.Name) and part.id == "Any") or (
                    isinstance(part, ast.Constant) and re.search(r"\bAny\b", str(part.value))
                ):
                    said.add(part.lineno)
        if said:
            found[module.name] = len(said)
    return found


@dataclass(frozen=True)
class Term:
    """One row of the glossary."""

    name: str
    code: tuple[str, ...]
    meaning: str
    given_up: tuple[str, ...]
    given_up_as_names: tuple[str, ...]


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", text))


@cache
def terms() -> list[Term]:
    """The rows of docs/glossary.md."""
    rows = []
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        if line.startswith("| **"):
            term, code, meaning, words = (cell.strip() for cell in line.strip("|").split("|"))
            anywhere, _, names = words.partition("as a name:")
            rows.append(Term(term.strip("*"), _quoted(code), meaning, _quoted(anywhere), _quoted(names)))
    return rows


def names_of(module: Module) -> Iterator[tuple[str, int]]:
    """Every name that the module gives or uses, with its line, without leading underscores."""
    for node in ast.walk(module.tree):
        found: str | None = None
        if isinstance(node, ast.Name):
            found = node.id
        elif isinstance(node, ast.Attribute):
            found = node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            found = node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = node.name
        elif isinstance(node, ast.alias):
            found = (node.asname or node.name).rpartition(".")[2]
        if found:
            yield found.lstrip("_"), getattr(node, "lineno", 0)


def _texts() -> Iterator[tuple[str, str]]:
    for module in modules():
        yield module.name, module.text
    for path in sorted([*SRC.rglob("*.html"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        # The glossary names them, and the decisions of the past say what was then.
        if path != GLOSSARY and "adr" not in path.parts:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


@cache
def given_up() -> list[str]:
    """Where words stand that the glossary has given up: anywhere in code, templates and pages, or as names in code."""
    # A part of a name counts (`is_held`), a part of a longer word does not.
    words = "|".join(re.escape(word) for term in terms() for word in term.given_up)
    pattern = re.compile(rf"(?<![A-Za-z])({words})(?![A-Za-z])")
    found = [
        f"{place}:{number} {match[0]}"
        for place, text in _texts()
        for number, line in enumerate(text.splitlines(), start=1)
        for match in pattern.finditer(line)
    ]
    names = {word for term in terms() for word in term.given_up_as_names}
    for module in modules():
        found += [f"{module.name}:{line} {name}" for name, line in names_of(module) if name in names]
        if module.name.rpartition(".")[2] in names:
            found.append(f"{module.name}: its own name")
    return found


def figures() -> Iterator[tuple[str, int, int, list[str]]]:
    """Each figure: what it is, how much it is, how much it may be, and where it comes from."""
    rows, sizes, opened = layers(), package_sizes(), open_types()
    yield "rows of the import contract", len(rows), CONTRACT_ROWS, []
    yield (
        "names in the contract that are no room, rooms in no row",
        len(inside() + unlisted()),
        0,
        inside() + unlisted(),
    )
    found = circles()
    yield "circles of files", len(found), 0, [" - ".join(circle) for circle in found]
    yield "imports of Celery outside its rooms", len(celery_elsewhere()), 0, celery_elsewhere()
    yield "imports of compat outside the app's start", len(compat_elsewhere()), 0, compat_elsewhere()
    over = [f"{name}: {size}" for name, size in sizes.items() if size > MODULES_IN_A_PACKAGE]
    yield "modules in the largest package", max(sizes.values()), MODULES_IN_A_PACKAGE, over
    longest = max(module.lines for module in modules())
    yield "lines of the longest file", longest, LINES_IN_A_FILE, long_files()
    yield "lines of src without the migrations", lines(), LINES, []
    most = sorted(opened.items(), key=lambda each: -each[1])[:5]
    yield (
        "lines with Any in an annotation",
        sum(opened.values()),
        OPEN_TYPES,
        [f"{name}: {count}" for name, count in most],
    )
    yield "terms of the glossary", len(terms()), TERMS, []
    yield "words that were given up", len(given_up()), GIVEN_UP, given_up()


def main() -> int:
    failed = False
    for what, figure, limit, where in figures():
        over = figure > limit
        failed = failed or over
        print(f"{'OVER ' if over else ''}{what}: {figure:,} (at most {limit:,})")
        for line in where if over else []:
            print(f"    {line}")
    files = [module.lines for module in modules() if module.lines]
    print(f"files: {len(files)}, of {median(files):.0f} lines in the median")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
