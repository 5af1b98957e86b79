"""`python leash.py script.py ...` or `python leash.py -m module ...`: run it, and end with whoever started us.

Our standard input is a pipe whose other end they hold. It closes when they are gone, however they went, and then our
whole process group goes too. So no process of the demo outlives it, not even after a SIGKILL.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def watch() -> None:
    """Wait for the pipe to close."""
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=watch, daemon=True).start()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
