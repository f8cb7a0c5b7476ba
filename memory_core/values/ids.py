"""Ids of new records."""

from __future__ import annotations

import os
import threading
import time
from typing import Final

_RANDOM_BYTES: Final = 10
"""Of one id, including its version and variant."""


def new_id() -> str:
    """A UUIDv7 (RFC 9562 section 5.7): sortable by creation, strictly ascending within this process."""
    return _ids.next()


class _Ids:
    """The ids of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> str:
        with self._lock:
            taken = os.urandom(_RANDOM_BYTES)
            stamp = time.time_ns() // 1_000_000 << 80 | int.from_bytes(taken, "big") & ~(0xF << 76 | 0x3 << 62)
            if stamp >> 80 <= self._last >> 80:
                stamp = self._last + 1 + int.from_bytes(taken[:3], "big")
                stamp &= ~(0xF << 76 | 0x3 << 62)
            self._last = max(stamp, self._last + 1)
            digits = f"{self._last | 0x7 << 76 | 0x2 << 62:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_ids = _Ids()


def _restart() -> None:
    """A forked child may have copied a locked lock."""
    global _ids  # noqa: PLW0603  (one per process)
    _ids = _Ids()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart)
