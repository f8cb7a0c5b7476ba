"""The places where a text can be split without cutting a character that readers see as one (a grapheme cluster).

The rules are those of UAX #29, from the categories that `unicodedata` knows.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_JOINING_BEFORE: Final = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")
"""Characters attached to the previous one although they are not marks by category."""
_PREPENDED: Final = frozenset(
    "\u0d4e\U000111c2\U000111c3\U000113d1\U0001193f\U00011941\U00011a3a\U00011a84\U00011a85\U00011a86\U00011a87"
    "\U00011a88\U00011a89\U00011d46\U00011f02"
)
"""Characters attached to the next one although they are not format characters by category."""
_VIRAMA: Final = 9
"""Combining class of the signs that fuse two consonants."""


def is_boundary(text: str, at: int, start: int = 0) -> bool:
    """True if the text can be split before position `at`.

    Args:
        start: A boundary at or before `at`, from which flags (pairs of letters) are counted.
    """
    if not start < at < len(text):
        return True
    left, right = text[at - 1], text[at]
    if left < "\u0300" and right < "\u0300":  # nearly always
        return left + right != "\r\n" and left != "\xad"
    if _attaches_before(right) or _attaches_after(left, right):
        return False
    return not (_is_flag_letter(left) and _is_flag_letter(right) and _flag_letters_before(text, at, start) % 2)


def boundary_before(text: str, at: int, start: int = 0) -> int:
    """The last boundary at or before `at`; `start` without a boundary after it."""
    while not is_boundary(text, at, start):
        at -= 1
    return at


def boundary_after(text: str, at: int, start: int = 0) -> int:
    """The first boundary at or after `at`."""
    while not is_boundary(text, at, start):
        at += 1
    return at


def _attaches_before(right: str) -> bool:
    return (
        unicodedata.category(right)[0] == "M"
        or right in _JOINING_BEFORE
        or "\U0001f3fb" <= right <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= right <= "\U000e007f"  # tags of flags
    )


def _attaches_after(left: str, right: str) -> bool:
    return (
        unicodedata.category(left) == "Cf"
        or left in _PREPENDED
        or (unicodedata.combining(left) == _VIRAMA and unicodedata.category(right) == "Lo")
        or (_is_hangul(left) and _is_jamo(right))
    )


def _is_hangul(character: str) -> bool:
    return _is_jamo(character) or "\uac00" <= character <= "\ud7a3"


def _is_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97c" or "\ud7b0" <= character <= "\ud7fb"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, at: int, start: int) -> int:
    count = 0
    while at - count > start and _is_flag_letter(text[at - count - 1]):
        count += 1
    return count
