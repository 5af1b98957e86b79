"""Runs the clients and prints a table.

python -m tests.clients [NAME ...]    all of them, or those of these names (tests/clients/recipes)
python -m tests.clients --docs        the table of docs/clients.md, as the recipes say it
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import services
from tests.clients import recipe as recipes
from tests.clients import story
from tests.takeover.releases import environments

HEAD = ("client", "version", "both installed", "ours alone", "what is done")


def one(recipe: recipes.Recipe) -> tuple[list[str], str, bool]:
    """Run one. Returns its row of the table, what is to be said about it, and whether it went well."""
    with tempfile.TemporaryDirectory(prefix=f"onebeat-{recipe.name}-") as folder:
        try:
            result = story.tell(recipe, Path(folder))
        except (environments.NotHere, services.Missing) as reason:
            return [recipe.client, recipe.version, "NOT RUN", "NOT RUN", recipe.did], str(reason), False
        except Exception:
            return [recipe.client, recipe.version, "FAILED", "FAILED", recipe.did], traceback.format_exc(), False
    faults = [f"{recipe.name}, {place}: {fault}" for place, fault in result.faults.items() if fault]
    done = f"{recipe.did} ({result.seconds:.0f} s)"
    own = f"; of its own tests {result.own[0]} pass" if any(result.own) else ""
    answers = ["FAILED" if result.faults[place] else "yes" for place in story.PLACES]
    return [recipe.client, recipe.version, *answers, done + own], "\n".join(faults), not faults


def table(rows: list[list[str]]) -> str:
    """As Markdown has it."""
    lines = [list(HEAD), ["---"] * len(HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str]) -> int:
    if arguments == ["--docs"]:
        print(table([recipe.row for recipe in recipes.every()]))
        return 0
    chosen = [recipes.named(name) for name in arguments] or recipes.every()
    answers = []
    with ThreadPoolExecutor(int(os.environ.get("CLIENTS_AT_ONCE", "2"))) as pool:
        for answer in pool.map(one, chosen):
            print(" ".join(answer[0][:4]), answer[1], sep="\n", flush=True)
            answers.append(answer)
    print(table([row for row, _, _ in answers]))
    return int(not all(well for _, _, well in answers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
