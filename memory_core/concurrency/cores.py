"""The cores of this process, and those that the vectors of documents take of them."""

from __future__ import annotations

import os

_left = 0


def cores() -> int:
    """The number of cores this process may use; `taskset` and containers can reduce it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores_for_documents() -> int:
    """The number of cores on which the vectors of documents are computed at once."""
    return max(1, cores() - _left)


def leave_a_core() -> None:
    """Compute the vectors of documents on one core fewer, if there are several: a server's requests need one, too.

    Each request changes threads several times, and gets no core for that while vectors take all of them
    (docs/measured.md, "Many users at one server").
    """
    global _left  # noqa: PLW0603  (the process serves, or it does not)
    _left = 1
