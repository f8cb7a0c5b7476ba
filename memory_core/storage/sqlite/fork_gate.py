"""A fork waits until no thread is inside SQLite, so that the child can use SQLite at all."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

FORK_SECONDS: Final = 2.0
"""The time for which a fork waits for running work."""


class ForkGate:
    """Makes a fork wait until no thread is inside a library whose locks would stay locked in the child.

    `before_fork`, `after_in_parent` and `after_in_child` are for `os.register_at_fork`.
    """

    def __init__(self) -> None:
        self.was_idle = True
        """True if no work was running when this process was forked."""
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: set[int] = set()
        """The threads that are inside."""

    @contextmanager
    def work(self) -> Generator[None]:
        """Context manager for work that a fork has to wait for; it begins after a running fork."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        # With a time limit: a signal handler, in the thread that is forking, may wait for this work.
        if self._changed.acquire(timeout=2 * FORK_SECONDS):
            self._inside.add(threading.get_ident())
            self._changed.release()

    def _leave(self) -> None:
        here = threading.get_ident()
        if here in self._inside:  # else it did not wait for the fork
            with self._changed:
                self._inside.discard(here)
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no work is running, and block new work."""
        self._changed.acquire()
        self.was_idle = self._changed.wait_for(lambda: not self._inside, FORK_SECONDS)

    def after_in_parent(self) -> None:
        """Go on."""
        self._changed.release()

    def after_in_child(self) -> None:
        """Start with no running work: the working threads are the parent's."""
        self._begin()


inside_sqlite: Final = ForkGate()
"""All work with SQLite in this package passes this gate; see `shared_file.py` for forks."""
