"""The block of memories in a prompt, as tests recognise it."""

from __future__ import annotations

import re
from typing import Final

from memory_core.values.frame import FRAME_END, FRAME_START

START: Final = FRAME_START
"""The first line of a block."""
END: Final = FRAME_END
"""The last one. A text that was remembered, a name or a label must not look like it."""

_BLOCK: Final = re.compile(rf"{START}\n(.*?)\n{END}", re.DOTALL)


def has_block(prompt: str) -> bool:
    """True if a prompt shows memories."""
    return START in prompt


def bodies(prompt: str) -> list[str]:
    """The lines between the first and the last one of each block."""
    return _BLOCK.findall(prompt)
