"""The work of a process before it ends, while threads can still be started.

`atexit` handlers run too late for work that needs threads: by then `concurrent.futures` refuses new work, and from
Python 3.12 on no thread starts. `threading` calls its own handlers before that, in reverse order of registration. Its
`_register_atexit` is private, and has no public counterpart; `concurrent.futures` uses it too. This module is the
only one that calls it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable


def before_threads_end(work: Callable[[], None]) -> None:
    """Call `work` as the interpreter ends, before it stops threads, and once more after that: `atexit` handlers of
    the application may have left more to do."""
    atexit.register(work)
    # The handler of executors, which makes them refuse work, must be registered first.
    import concurrent.futures.thread  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport]

    try:
        threading._register_atexit(work)  # type: ignore[attr-defined] # noqa: SLF001
    except (AttributeError, RuntimeError):
        return  # a Python without it, or one that is ending already: the call at exit remains
