"""Patterns of `like`: `%` stands for any characters, `_` for one.

Other threads get their turn while a text is compared: only the search for the next place of a literal holds the
interpreter, and it takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Part:
    """The part between two `%`, all of whose matches have the same length."""

    length: int
    literals: tuple[tuple[int, str], ...]
    """The runs without `_`, with their places in the part; the longest first."""

    def is_at(self, text: str, start: int) -> bool:
        """True if it matches at this place."""
        return start + self.length <= len(text) and all(
            text.startswith(literal, start + offset) for offset, literal in self.literals
        )

    def end(self, text: str, at: int) -> int | None:
        """The end of its first match from a place on."""
        if not self.literals:
            return at + self.length if at + self.length <= len(text) else None
        offset, literal = self.literals[0]
        found = text.find(literal, at + offset)
        while found >= 0:
            if self.is_at(text, found - offset):
                return found - offset + self.length
            found = text.find(literal, found + 1)
        return None


def like(pattern: str) -> Callable[[str], bool]:
    """Build the test of a text against a pattern.

    The first place of each part is as good as any other, because what may follow it is any characters.
    """
    first, *others = map(_part, pattern.split("%"))
    if not others:
        return lambda text: len(text) == first.length and first.is_at(text, 0)
    *between, last = others

    def matches(text: str) -> bool:
        if not first.is_at(text, 0):
            return False
        at = first.length
        for part in between:
            end = part.end(text, at)
            if end is None:
                return False
            at = end
        return len(text) - last.length >= at and last.is_at(text, len(text) - last.length)

    return matches


def _part(written: str) -> _Part:
    literals = ((found.start(), found.group()) for found in re.finditer("[^_]+", written))
    return _Part(len(written), tuple(sorted(literals, key=lambda one: -len(one[1]))))
