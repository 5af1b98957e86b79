"""python -m legacy.main STEPS: runs steps in this process and prints their answers as one line of JSON, the last line.

A step is [name, *arguments]: a function of the modules below, or "manage" with a minute of the story
and a command.
"""

import io
import json
import sys

import django


def main(steps):
    django.setup()
    from django.core.management import call_command
    from legacy import ask, beat, edit, fill, write
    from legacy.at import at, pinned

    known = {
        "fill": fill.fill,
        "beliefs": ask.beliefs,
        "crontabs": ask.crontabs,
        "plans": ask.plans,
        "readings": ask.readings,
        "rights": ask.rights,
        "pages": ask.pages,
        "beat": beat.beat,
        "edit": edit.edit,
        "write": write.write,
    }
    answers = []
    for name, *args in steps:
        if name == "manage":
            told = io.StringIO()
            with pinned(at(args[0])):
                call_command(*args[1:], stdout=told)
            answers.append(told.getvalue())
        else:
            answers.append(known[name](*args))
    print("\n" + json.dumps(answers))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
