"""The door to an HTTP header: a value of ours has printable ASCII characters and spaces only (RFC 9110, 5.5).

Another value is refused before it is sent, because libraries quote it in their errors, and it is a key.
"""

from __future__ import annotations

import re
from typing import Final

from memory_core.errors import InvalidInputError, MemoryCoreError

_OTHER: Final = re.compile(r"[^\x20-\x7e]")


def check_header(name: str, value: str, error: type[MemoryCoreError] = InvalidInputError) -> str:
    """Return `value` if a header can carry it.

    Raises:
        MemoryCoreError: It cannot, as `error`; the message does not show the value.
    """
    if (found := _OTHER.search(value)) is not None:
        raise error(
            f"{name} has {found[0]!r} at position {found.start()}, which no HTTP header can carry; a line end may have "
            "been read with it"
        )
    return value
