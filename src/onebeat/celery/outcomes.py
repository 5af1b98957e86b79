"""How each attempt in this worker ended, for those who watch it: ended in the worker's process, without a database."""

from __future__ import annotations

from django.dispatch import Signal

#: Arguments: `request` (a task's request or its headers; anything with `get`) and `outcome` (`Outcome`). Sent for every
#: task, also for those that no scheduler of onebeat has sent; not for copies that the guard has stopped.
ended = Signal()
