r"""The door to a terminal and to a log: no character of a text acts there.

None moves the cursor, colours, reorders, hides, or begins a line of a log; such a character is written as its escape,
`\x1b` or `\u202e`.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_PRINTED_CHARS: Final = 100
"""Characters of a name in a log."""
_HARMLESS: Final = frozenset("\n\t")
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS: Final = frozenset("\u200c\u200d")  # parts of words and of emoji, without an effect on a terminal


def plain(text: str) -> str:
    """The text with every character escaped that could act; its lines and tabs stay."""
    return "".join(_escaped(char) for char in text)


def one_line(text: str, most: int = MAX_PRINTED_CHARS) -> str:
    """The text as one line of at most so many characters, in which no character acts."""
    joined = " ".join(plain(text).split())
    return joined if len(joined) <= most else joined[: most - 1] + "…"


def _escaped(char: str) -> str:
    if char in _HARMLESS or char in _JOINERS or unicodedata.category(char) not in _UNSAFE:
        return char
    return repr(char)[1:-1] if ord(char) > 0xFF else f"\\x{ord(char):02x}"
