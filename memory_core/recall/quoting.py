"""Quote texts for a prompt: one line each, in which nothing ends the quotes or the block around it.

Invariant: whatever others chose stands inside quotes. Bare are only our roles, ids of our form, and one word of letters
and digits of up to 30 characters; `named` decides it for every block, tool and prompt.
"""

from __future__ import annotations

import json
import re
from typing import Final

from memory_core.models import ROLES

MAX_ITEM_CHARS: Final = 500
"""Maximum number of characters of a quoted text."""
MAX_AUTHOR_CHARS: Final = 60
"""Maximum number of characters of a quoted name."""
_MAX_WORD_CHARS: Final = 30
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|mem_[0-9]{1,16}_[0-9a-f]{16}")
"""A UUID, or an id of the Skynet facade."""
_JOINERS: Final = "\u200c\u200d"
"""Characters that are not printable but that some scripts and emoji need."""


def excerpt(text: str, most: int) -> str:
    """One line of at most `most` visible characters; spaces replace characters that hide text or begin a line."""
    stripped = text.strip()
    if len(stripped) <= most and stripped.isprintable() and "  " not in stripped:
        return stripped
    line = " ".join(stripped[: 2 * most].split())
    if not line.isprintable():
        line = " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in line).split())
    return line if len(line) <= most and len(stripped) <= 2 * most else line[: most - 1] + "…"


def quoted(text: str, most: int = MAX_ITEM_CHARS) -> str:
    """An excerpt as a string literal of JSON."""
    shown = json.dumps(excerpt(text, most), ensure_ascii=False)
    return shown.replace("<", "\\u003c").replace(">", "\\u003e")


def printable(text: str, max_chars: int) -> str:
    """The content of `quoted`, without the quotes."""
    return quoted(text, max_chars)[1:-1]


def named(name: str, most: int = MAX_AUTHOR_CHARS) -> str:
    """A name that others chose: bare if it is a role, an id of our form or one short word, else quoted."""
    is_word = name.isalnum() and len(name) <= _MAX_WORD_CHARS
    return name if is_word or name in ROLES or _ID.fullmatch(name) else quoted(name, most)
