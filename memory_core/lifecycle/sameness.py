"""Find texts that are equal but for how they are written, and texts that look alike. Pure functions.

Equal texts are merged without asking, so in doubt two texts differ: an extra line costs less than a lost fact. Texts
that look alike are shown to a person, who decides: no rule about letters and words knows that "sulfites" are not
"sulfates" and that "keine" is not "eine".
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from memory_core.concurrency.threads import yield_now

LEAST_SLIP_CHARS: Final = 4
"""A shorter word with another letter is more often another word."""
MAX_SLIP_WORDS: Final = 60
"""Most words of a text of which one may have another letter."""
MAX_BUCKET: Final = 100
"""Most different texts with the same words that are compared with each other."""
LONGEST: Final = 10_000
"""Characters of the longest text that is compared. To find the words of thirty texts of a megabyte takes 20 seconds,
and nobody who reads two long texts sees that their words are the same."""


_TOKEN: Final = re.compile(
    r"[-+\u2212]?[$\u20ac\u00a3]?\d+(?:[.,:/-]\d+)*\w*|\w+|(?<=\w)['\u2019]\w+|[^\w\s.,;:!?\"'\u2018\u2019\u201c\u201d()\u2026\u2013\u2014-]"
)
_BEFORE_CODE: Final = ("`", ".", "/", "@", "#", "*", "\\", "$")
"""Characters right before a word that show that it is not a word of a language."""
_ARTICLES: Final = frozenset(("a", "an", "the"))


def alike(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of positions of texts that look alike: with the same words in another order, or with one letter more, less
    or different, or two neighbours exchanged, in one longer word that is not written like a name or code. A text of
    more than `LONGEST` characters looks like no other one."""
    buckets: dict[tuple[bool, Sequence[str]], list[tuple[int, str]]] = defaultdict(list)
    for place, text in enumerate(texts):
        yield_now()
        if len(text) > LONGEST:
            continue
        for key, word in _places_of(statement_of(text)):
            buckets[key].append((place, word))
    return sorted(
        {
            (one, other)
            for entries in buckets.values()
            for (one, word), (other, written) in combinations(entries[:MAX_BUCKET], 2)
            if one != other and _is_one_slip(word, written)
        }
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """The words of a text."""

    words: tuple[str, ...]
    """In order, without case, punctuation and articles."""
    is_name: tuple[bool, ...]
    """For each word, whether it is written like a name or code, or has a digit."""


def statement_of(text: str) -> Statement:
    """The words of a text, and which of them are names."""
    words: list[str] = []
    names: list[bool] = []
    end = 0
    for found in _TOKEN.finditer(unicodedata.normalize("NFKC", text)):
        token, between = found.group(), found.string[end : found.start()]
        starts = end == 0 or any(mark in between for mark in ".!?\n")
        end = found.end()
        word = token.casefold().replace("\u2019", "'")
        if word in _ARTICLES:
            continue
        is_quoted = between.endswith(_BEFORE_CODE) or "_" in token
        words.append(word)
        names.append(is_quoted or any(map(str.isdigit, token)) or (token[0].isupper() and word != "i" and not starts))
    return Statement(tuple(words), tuple(names))


def _places_of(statement: Statement) -> Iterator[tuple[tuple[bool, Sequence[str]], str]]:
    """All words of a statement, sorted; and all but one for each word that may have another letter, with that word."""
    ordered = tuple(sorted(statement.words))
    if not ordered:
        return
    yield (True, ordered), ""
    if len(ordered) <= MAX_SLIP_WORDS:
        written = zip(statement.words, statement.is_name, strict=True)
        for word in {word for word, is_name in written if not is_name and word.isalpha()}:
            if len(word) >= LEAST_SLIP_CHARS - 1:
                at = ordered.index(word)
                yield (False, (*ordered[:at], *ordered[at + 1 :])), word


def _is_one_slip(word: str, other: str) -> bool:
    """True if one inserted, deleted or replaced letter, or two exchanged neighbors, turn one word into the other; or
    nothing."""
    if len(word) > len(other):
        word, other = other, word
    if word != other and len(other) < LEAST_SLIP_CHARS:
        return False
    start = 0
    while start < len(word) and word[start] == other[start]:
        start += 1
    left, right = word[start:], other[start:]
    if len(word) < len(other):
        return left == right[1:]
    swapped = left[1:2] + left[:1] + left[2:]
    return left[1:] == right[1:] or swapped == right
