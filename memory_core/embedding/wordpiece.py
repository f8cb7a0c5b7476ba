"""The tokenizer of uncased BERT models, with the standard library only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from memory_core.errors import EmbeddingError

_SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_SPECIAL_LITERAL: Final = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")

_LONGEST_WORD: Final = 100
"""Characters; a longer word is unknown, as in BERT's own tokenizer."""

_SHORT_WORD: Final = 3
"""Letters of a word that says little about a language."""
_CAPITALISED: Final = re.compile(r"(?<=\s)[A-Z\u00c0-\u00de\u0391-\u03a9\u0410-\u042f]\w*")
"""A word with a capital letter that is not the first of the text."""

_CACHED_WORDS: Final = 32_768
"""Number of words whose pieces are cached: about 6 MB when full."""

_CHINESE: Final = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


class _Characters(dict[int, str]):
    """A table for `str.translate` that is filled as characters occur; with all of Unicode it would take 100 MB."""

    _CAPACITY = 65_536

    def __init__(self, made_of: Callable[[str], str]) -> None:
        super().__init__()
        self._made_of = made_of

    def __missing__(self, code: int) -> str:
        made = self._made_of(chr(code))
        if len(self) < self._CAPACITY:
            self[code] = made
        return made


def _cleaned(char: str) -> str:
    """First pass: drop control characters, turn white space into blanks, put blanks around Chinese characters."""
    if char in "\t\n\r" or unicodedata.category(char)[0] == "Z":
        return " "
    if char == "\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"}:
        return ""
    return f" {char} " if any(ord(char) in block for block in _CHINESE) else char


def _folded(char: str) -> str:
    """Second pass, after canonical decomposition: drop accents, lower-case, put blanks around punctuation."""
    if unicodedata.category(char) == "Mn":
        return ""
    return f" {char} " if _is_punctuation(char) else char.lower()


def _is_punctuation(char: str) -> bool:
    """Like BERT, counts every ASCII character that is not a letter, digit or blank, also `$`, `+` and `|`."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char)[0] == "P"


class WordPiece:
    """Turns text into token ids as uncased BERT models do, with the standard library only.

    The rules are those of `BertTokenizer` in google-research/bert (`tokenization.py`), in the variant of the
    `tokenizers` package, which the tests compare with: clean, space out Chinese characters, strip accents, lower-case,
    split at punctuation, then take the longest known piece from the left of each word.

    Args:
        vocabulary: The pieces in the order of their ids, one per line of a `vocab.txt`. `##` marks a piece that
            continues a word.

    Raises:
        EmbeddingError: One of `[PAD] [UNK] [CLS] [SEP] [MASK]` is missing.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        if missing := [piece for piece in _SPECIAL if piece not in self._ids]:
            raise EmbeddingError(f"the vocabulary of {len(vocabulary)} pieces lacks {', '.join(missing)}")
        self._unknown, self._first, self._last = (self._ids[piece] for piece in ("[UNK]", "[CLS]", "[SEP]"))
        self._cleaned, self._folded = _Characters(_cleaned), _Characters(_folded)
        self._pieces = lru_cache(_CACHED_WORDS)(self._split)

    def encode(self, text: str, *, max_tokens: int) -> list[int]:
        """The ids of `[CLS]`, the pieces of the text, and `[SEP]`, truncated to `max_tokens` in all.

        The names of special tokens in the text (`[MASK]`) become those tokens. An empty text gives two ids.
        """
        ids = [self._first]
        for part in _SPECIAL_LITERAL.split(text) if "[" in text else (text,):
            if part in _SPECIAL:
                ids.append(self._ids[part])
                continue
            for word in self._words(part):
                ids += self._pieces_of(word)
                if len(ids) >= max_tokens:
                    break
        del ids[max_tokens - 1 :]
        ids.append(self._last)
        return ids

    def familiarity(self, text: str) -> float:
        """The familiarity of the vocabulary with the words of a text, from 0 to 1.

        It rises from 0 to 1 as the share of letters in words of a single piece rises from a quarter to a half. Words
        with a capital inside a sentence do not count, because most are names, and nor do words of up to three ASCII
        letters, which are pieces of some language each. The share is 0.3 or more for 99 % of English queries and 1 for
        most, nothing for most German and Spanish ones, and nothing for Russian and Chinese ones.
        """
        whole = letters = 0
        for word in self._words(_CAPITALISED.sub("", text)):
            if any(map(str.isalpha, word)) and (len(word) > _SHORT_WORD or not word.isascii()):
                letters += len(word)
                pieces = self._pieces_of(word)
                if len(word) > 1 and len(pieces) == 1 and pieces[0] != self._unknown:
                    whole += len(word)
        return min(max(4 * whole / letters - 1, 0.0), 1.0) if letters else 1.0

    def is_word(self, word: str) -> bool:
        """True if a word in lower case is a piece by itself."""
        return word in self._ids

    def _words(self, text: str) -> list[str]:
        cleaned = text.translate(self._cleaned)
        if not cleaned.isascii():
            cleaned = unicodedata.normalize("NFD", cleaned)
        return cleaned.translate(self._folded).split()

    def _pieces_of(self, word: str) -> tuple[int, ...]:
        return self._pieces(word) if len(word) <= _LONGEST_WORD else (self._unknown,)

    def _split(self, word: str) -> tuple[int, ...]:
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._ids.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)
