"""The texts that take so long to analyse that a thread does it instead of the event loop."""

from __future__ import annotations

from typing import Final

LONG_CHARS: Final = 1_000
"""Characters whose analysis takes about a millisecond; longer texts are not analysed on the core loop."""
_WIDE: Final = 8
"""A character outside ASCII takes as long as this many ASCII characters."""


def is_long(*texts: str) -> bool:
    """True if the analysis of these texts would block a loop for longer than about a millisecond."""
    return sum(len(text) * (1 if text.isascii() else _WIDE) for text in texts) > LONG_CHARS
