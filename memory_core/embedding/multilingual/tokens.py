"""The tokenizer of the Universal Sentence Encoder, with the standard library only.

A text is normalised (NFKC), split at spaces, and each word is cut into the pieces whose probabilities have the greatest
product: the unigram model of Kudo (ACL 2018). No piece goes beyond a word, so words are cut one by one, and most are
remembered. These are the rules of SentencePiece, whose pieces the tests compare with.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from memory_core.embedding.multilingual.vocabulary import LONGEST, UNKNOWN, Vocabulary

_SPACE: Final = "\u2581"
"""The character that SentencePiece writes for a space, and before the first word."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_CHARS_A_PIECE: Final = 16
"""No longer text is tokenized for each piece that is wanted: pieces have four characters on average."""
_SPACES: Final = dict.fromkeys(map(ord, "\t\n\f\r\u1680\u200b\u200e\u200f\u2028\u2029\u2581\ufeff\ufffd"), " ")
"""The characters that are spaces, besides those that NFKC makes one."""
_AS_IT_IS: Final = "\uff5e"
"""The full-width tilde, which is no tilde."""
_CACHED_WORDS: Final = 32_768
"""Number of words whose pieces are remembered: about 6 MB when full."""
_LONGEST_CACHED: Final = 32
"""Characters; longer runs are sentences without spaces, which do not come again."""


class Pieces:
    """Turns text into the ids of pieces. Several threads can use it at once."""

    FIRST: Final = 1
    """Before the text."""
    LAST: Final = 2
    """After the text."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._space = vocabulary.find(_SPACE.encode())
        self._remembered = lru_cache(_CACHED_WORDS)(self._cut)

    def encode(self, text: str, *, max_tokens: int) -> list[int]:
        """The ids of the pieces of a text and of the marks around it, `max_tokens` in all at most."""
        ids = [self.FIRST]
        for word in _normalised(text[: _CHARS_A_PIECE * max_tokens]).split(" "):
            if word:
                ids += self._cut(word) if len(word) > _LONGEST_CACHED else self._remembered(word)
                if len(ids) >= max_tokens:
                    break
        del ids[max_tokens - 1 :]
        ids.append(self.LAST)
        return ids

    def known(self, text: str, *, max_tokens: int) -> float:
        """The share of the pieces of a text's words that the vocabulary has, from 0 to 1; 1 for a text without words.

        A run of letters that it lacks is one piece.
        """
        found = self.encode(" ".join(_WORD.findall(text)), max_tokens=max_tokens)
        counted = len(found) - 2 - found.count(self._space)
        return 1 - found.count(UNKNOWN) / counted if counted else 1.0

    def _cut(self, word: str) -> tuple[int, ...]:
        """The most probable pieces of a word; of two ways that are alike the one whose last piece starts first."""
        text = _SPACE + word
        written = text.encode()
        at = [0, *accumulate(len(character.encode()) for character in text)]
        best = [0.0] + [float("-inf")] * len(text)
        last = [(0, UNKNOWN)] * len(best)
        """By where it ends: where the last piece starts, and which it is."""
        for start in range(len(text)):
            for end in range(start + 1, min(start + LONGEST, len(text)) + 1):
                piece = self._vocabulary.find(written[at[start] : at[end]])
                if piece != UNKNOWN or end == start + 1:
                    score = best[start] + self._vocabulary.score(piece)
                    if score > best[end]:
                        best[end], last[end] = score, (start, piece)
        return _joined(last)


def _joined(last: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """The pieces in order, from those that end at each place; several unknown ones in a row are one."""
    ids: list[int] = []
    end = len(last) - 1
    while end > 0:
        end, piece = last[end]
        if piece != UNKNOWN or ids[-1:] != [UNKNOWN]:
            ids.append(piece)
    return tuple(reversed(ids))


def _normalised(text: str) -> str:
    """A text as its pieces are written, but for the spaces; a lone surrogate is a question mark."""
    clean = text.encode("utf-8", "replace").decode().translate(_SPACES)
    if clean.isascii():
        return clean
    return _AS_IT_IS.join(unicodedata.normalize("NFKC", part) for part in clean.split(_AS_IT_IS))
