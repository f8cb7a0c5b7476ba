"""Names for records that nobody has to agree on."""

from __future__ import annotations

import os
import threading
import time


def new_id() -> str:
    """A UUIDv7 (RFC 9562 section 5.7): sortable by creation, strictly ascending within this process."""
    global _last_id  # noqa: PLW0603  (monotonic within the process)
    with _id_lock:
        stamp = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big") & ~(0xF << 76 | 0x3 << 62)
        if stamp >> 80 <= _last_id >> 80:
            stamp = _last_id + 1 + (int.from_bytes(os.urandom(3), "big"))
            stamp &= ~(0xF << 76 | 0x3 << 62)
        _last_id = max(stamp, _last_id + 1)
        digits = f"{_last_id | 0x7 << 76 | 0x2 << 62:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_last_id = 0
_id_lock = threading.Lock()
