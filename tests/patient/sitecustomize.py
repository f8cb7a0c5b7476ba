"""Deadlines of the product that a busy machine keeps, in a program with this folder on its path.

Python imports a module of this name before a program, and so before any adapter, which reads some of the deadlines when
it is imported. `tests/conftest.py` has the deadlines of the tests themselves.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Final

_SECONDS: Final = 60.0

with suppress(ImportError):  # a program of an environment without our packages
    from memory_core.conversation import limits

    for _name in ("RECALL_SECONDS", "CALL_SECONDS", "LOADING_SECONDS"):
        setattr(limits, _name, _SECONDS)


def _print_tasks(*_: object) -> None:
    """Say what a program that hangs waits for."""
    import asyncio

    for task in asyncio.all_tasks(asyncio.get_running_loop()):
        task.print_stack()


signal.signal(signal.SIGUSR1, _print_tasks)
