"""How tests recognise the block of memories in a prompt; no other file of tests spells its frame."""

from __future__ import annotations

import re
from typing import Final

START: Final = "<memories>"
"""The first line of a block."""
END: Final = "</memories>"
"""The last one. A text that was remembered, a name or a label must not look like it."""

_BLOCK: Final = re.compile(rf"{START}\n(.*?)\n{END}", re.DOTALL)


def has_block(prompt: str) -> bool:
    """Whether a prompt shows memories."""
    return START in prompt


def bodies(prompt: str) -> list[str]:
    """What stands between the first and the last line of each block."""
    return _BLOCK.findall(prompt)
