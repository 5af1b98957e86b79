"""Writes the pages beside it from the docstrings: `make reference`. With --check it only compares, and exits with 1."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import os
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOTE = "<!-- Written by `make reference` from the docstrings. Edit those. -->"
#: The names of the package by what they are about; all others are in the last group.
GROUPS = {
    "Once, later": [
        "once",
        "once_many",
        "cancel",
        "linked",
        "Once",
        "OnceItem",
        "OnceState",
        "IfExists",
        "MessageOptions",
    ],
    "Declared in code": [
        *("recurring", "Cron", "Every", "Solar", "Declaration", "overrides", "drop_override", "Override"),
    ],
    "Pause, skip, run": ["pause", "resume", "skip", "run_now", "Run", "Tag", "ALL", "CatchUp"],
    "Looking": ["upcoming", "Upcoming", "explain", "Verdict"],
    "Errors": ["KeyTaken", "NotJSON", "UnknownTask"],
}


def pages() -> dict[str, str]:
    """Each page by its file name."""
    return {
        "package.md": page("The package `onebeat`", package()),
        "testing.md": page("`onebeat.testing`", testing()),
        "models.md": page("`onebeat.models`", models()),
        "signals.md": page("`onebeat.signals`", signals()),
        "settings.md": page("The setting `ONEBEAT`", settings()),
        "command.md": page("`manage.py onebeat`", command()),
    }


def page(title: str, parts: Iterator[str]) -> str:
    return "\n\n".join([NOTE, f"# {title}", *parts]) + "\n"


def package() -> Iterator[str]:
    import onebeat

    yield (
        "Each name here is one of `import onebeat`. The verbs have a twin for asynchronous code with an `a` in front: "
        "`await onebeat.aonce(...)`."
    )
    twins = {name for name in onebeat.__all__ if name[0] == "a" and name[1:] in onebeat.__all__}
    left = [name for name in onebeat.__all__ if name not in twins | {one for names in GROUPS.values() for one in names}]
    for title, names in {**GROUPS, **({"More": left} if left else {})}.items():
        yield f"## {title}"
        for name in names:
            if name in onebeat.__all__:
                yield from one(name, getattr(onebeat, name))


def testing() -> Iterator[str]:
    from onebeat import testing

    yield text(testing.__doc__)
    for name in testing.__all__:
        yield from one(name, getattr(testing, name), members=True)


def models() -> Iterator[str]:
    from onebeat import models
    from onebeat.models.schedule_value import ScheduleValue

    yield text(models.__doc__)
    for name in models.__all__:
        model = getattr(models, name)
        if not hasattr(model, "_meta"):
            continue
        yield f"## {name}"
        yield text(model.__doc__)
        yield f"Table `{model._meta.db_table}`."
        comments = {} if issubclass(model, ScheduleValue) else fields_of(model)
        rows = []
        for field in model._meta.local_concrete_fields:
            said = str(field.help_text) or comments.get(field.name, ("", ""))[1]
            words = {"choices": [key for key, _ in field.flatchoices], "null": field.null, "unique": field.unique}
            marks = [f"one of {', '.join(map(str, words['choices']))}"] if words["choices"] else []  # type: ignore[arg-type]
            marks += [word for word in ("null", "unique") if words[word]]
            rows.append(f"| `{field.name}` | {type(field).__name__} | {'; '.join(marks)} | {cell(said)} |")
        yield "\n".join(["| field | type | | |", "|---|---|---|---|", *rows])


def signals() -> Iterator[str]:
    from onebeat import signals

    yield text(signals.__doc__)


def settings() -> Iterator[str]:
    from onebeat.conf import Settings

    yield text(Settings.__doc__)
    said, usual = fields_of(Settings), Settings()
    rows = [f"| `{name}` | `{getattr(usual, name)!r}` | {cell(words)} |" for name, (_, words) in said.items()]
    yield "\n".join(["| key | default | |", "|---|---|---|", *rows])


def command() -> Iterator[str]:
    from onebeat.management.commands.onebeat import Command

    parser = Command().create_parser("manage.py", "onebeat")
    yield text(Command.help)
    (choices,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    told = {action.dest: action.help for action in choices._choices_actions}
    for name, sub in sorted(choices.choices.items()):
        words = ". ".join(filter(None, (sentence(told.get(name) or ""), sub.description)))
        yield f"## onebeat {name}\n\n{words.rstrip('.')}."
        yield from options(sub)
        for action in sub._actions:
            if isinstance(action, argparse._SubParsersAction):
                inner_words = {each.dest: each.help for each in action._choices_actions}
                for part, inner in action.choices.items():
                    yield f"### onebeat {name} {part}\n\n{sentence(inner_words.get(part) or '')}."
                    yield from options(inner)


def options(parser: Any) -> Iterator[str]:
    rows = []
    for action in parser._actions:
        if action.dest == "help" or isinstance(action, argparse._SubParsersAction):
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
        rows.append(f"| `{name}{value}` | {cell(action.help or '')} |")
    if rows:
        yield "\n".join(["| option | |", "|---|---|", *rows])


# -- one name ----------------------------------------------------------------------------------------------------------


def one(name: str, thing: Any, *, members: bool = False, level: str = "###") -> Iterator[str]:
    """The signature and the docstring; of a class with data its fields, and with `members` its methods."""
    if inspect.isclass(thing):
        yield f"{level} {name}"
        # One that a decorator has made says no more than the fields.
        if not issubclass(thing, BaseException) and "def __init__" in inspect.getsource(thing):
            yield code(signature(thing.__name__, thing))
        yield text(thing.__doc__)
        said = fields_of(thing)
        if said:
            rows = [f"| `{field}` | {cell(kind)} | {cell(words)} |" for field, (kind, words) in said.items()]
            yield "\n".join(["| field | type | |", "|---|---|---|", *rows])
        for key, value in vars(thing).items() if members else ():
            if key[0] == "_" or text(value.__doc__).startswith("As unittest"):
                continue
            if isinstance(value, property):
                yield f"{level}# {name}.{key}\n\n{text(value.__doc__)}"
            elif inspect.isfunction(value) and value.__doc__:
                yield f"{level}# {name}.{key}\n\n{code(signature(key, value))}\n\n{text(value.__doc__)}"
    elif inspect.isroutine(thing):
        yield f"{level} {name}"
        yield code(signature(name, thing))
        yield text(thing.__doc__)
    else:
        yield f"{level} {name}"
        yield code(f"{name}: {str(thing).replace('typing.', '')}")


def signature(name: str, thing: Any) -> str:
    found = inspect.signature(thing)
    parts: list[str] = []
    star = False
    for key, parameter in found.parameters.items():
        if key == "self":
            continue
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append(part(key, parameter))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            parts.append("/")
    if parts.count("/") > 1:  # only the last one counts
        parts = [one for at, one in enumerate(parts) if one != "/" or "/" not in parts[at + 1 :]]
    result = "" if found.return_annotation is inspect.Signature.empty else f" -> {named(found.return_annotation)}"
    line = f"{name}({', '.join(parts)}){result}"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {one},\n" for one in parts) + f"){result}"


def part(key: str, parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = "" if parameter.annotation is parameter.empty else f": {named(parameter.annotation)}"
    usual = "" if parameter.default is parameter.empty else f"{' = ' if kind else '='}{parameter.default!r}"
    return f"{stars}{key}{kind}{usual}"


def named(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def fields_of(thing: type) -> dict[str, tuple[str, str]]:
    """The public fields of a class by its source: their types, and what the comment above each says."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return {}
    lines, found = source.splitlines(), {}
    if not (dataclasses.is_dataclass(thing) or hasattr(thing, "__required_keys__") or hasattr(thing, "_meta")):
        return {}
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name, kind = node.target.id, ast.unparse(node.annotation)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and hasattr(thing, "_meta"):
            name, kind = node.targets[0].id, ""
        else:
            continue
        if name[0] == "_":
            continue
        words, number = [], node.lineno - 2
        while lines[number].strip().startswith("#:"):
            words.insert(0, lines[number].strip()[2:].strip())
            number -= 1
        found[name] = (kind, " ".join(words))
    return found


def text(docstring: str | None) -> str:
    return inspect.cleandoc(docstring or "")


def code(lines: str) -> str:
    return f"```python\n{lines}\n```"


def cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "&#124;")


def sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def main() -> int:
    """Write, or compare."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.project.settings")
    sys.path.insert(0, str(HERE.parent.parent))
    import django

    django.setup()
    wanted = pages()
    if "--check" not in sys.argv:
        for name, page_text in wanted.items():
            (HERE / name).write_text(page_text)
        return 0
    stale = [name for name, page_text in wanted.items() if (HERE / name).read_text() != page_text]
    for name in stale:
        print(f"docs/reference/{name} is not what the docstrings say: run `make reference`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
