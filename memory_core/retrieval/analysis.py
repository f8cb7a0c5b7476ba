"""Split a text into the terms it is found by.

A record and a query go through the same `analyse`, so what it does to a word matters less than that it does it twice.
Words of segmented scripts are folded (case, width, ligatures, diacritics), stripped of English stop words, reduced to
their base form where English is irregular ("went" is "go") and stemmed by Porter's rules (`english.py`). Scripts
without spaces between words become overlapping pairs of characters. Text in other languages is folded and split, which
is safe, and finds exact word forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from memory_core.concurrency.threads import yield_now
from memory_core.retrieval.english import BASE_FORMS, MISREAD, STOP_WORDS, stem
from memory_core.retrieval.folding import fold

ANALYSIS: Final = 8
"""The version of the analysis. Increase it when a text may get other terms, flags or words; stored texts are then
re-analysed."""

_LONGEST = 64
"""Longer runs of letters and digits (base64, hashes) are split into terms of this length, so that terms are bounded."""

_SPACED = bytes(code if chr(code).isalnum() else 0x20 for code in range(128)) + bytes(128)
"""Replaces everything that is not part of a word by spaces. A byte table is several times as fast as a regular
expression, and this step takes much of the time of a write."""
_SHAPE = bytes(0x20 if chr(code).isspace() else 0x78 for code in range(128)) + bytes(128)
"""Replaces each character that is not white space by "x"."""
_HAN = r"\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
_HIRAGANA = r"\u3041-\u309f"
_KATAKANA = r"\u30a1-\u30ff\u31f0-\u31ff"
_PROLONGED = r"\u30fc"
_THAI = r"\u0e00-\u0e7f"
_LAO = r"\u0e80-\u0eff"
_MYANMAR = r"\u1000-\u109f"
_KHMER = r"\u1780-\u17ff"
_HANGUL = r"\uac00-\ud7a3"
_UNSEGMENTED = (_HAN, _HIRAGANA, _KATAKANA, _THAI, _LAO, _MYANMAR, _KHMER, _HANGUL)
_PAIRED_RUN = "|".join(
    rf"[{_HIRAGANA}][{_HIRAGANA}{_PROLONGED}]*" if script is _HIRAGANA else f"[{script}]+" for script in _UNSEGMENTED
)
_FOLDED_WORD = re.compile(rf"({_PAIRED_RUN})|([^ '{''.join(_UNSEGMENTED)}]{{1,{_LONGEST}}})")
_HAN_RUN = re.compile(f"[{_HAN}]{{2,}}")
_UNSEGMENTED_CHARACTER = re.compile(f"[{''.join(_UNSEGMENTED)}]")

_PIECE = 4_000
"""Characters folded and split into words in one step. No other thread can interrupt a step, and the folded text may be
18 times as long (U+FDFA)."""
_ENDS = " \n.,!?\u3002\u3001\uff0c"
"""Characters that separate words in any text, before and after folding."""

QUESTION_MARKS: Final = frozenset("?\uff1f\u061f\u2e2e\u2047\u2048\u2049\u203d\ufe56\u037e")
"""Question marks of all scripts."""
_QUESTION_MARK = re.compile(rf"[{''.join(QUESTION_MARKS)}](?!\w)")
"""One that is followed by a letter is part of an address."""

_ARTICLE = re.compile(r"^(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=\w{3})")
"""The Arabic article, alone and joined to "and", "so", "in", "like" or "for", before at least three letters: a light
stemmer takes it off, too (Larkey, Ballesteros and Connell, SIGIR 2002)."""


def analyse(text: str) -> list[str]:
    """Return the index terms of a text, in order, repeated terms repeated.

    Case, compatibility forms (full-width letters, ligatures) and the diacritics of Latin, Greek, Cyrillic, Hebrew and
    Arabic do not matter; marks that make another letter, such as Japanese voicing marks and Indic vowel signs, do.
    Composed and decomposed input give equal terms. An emoji is a word. Everything else that is not a letter, digit or
    mark separates words, the underscore and the apostrophe included. Characters of Han, Hiragana, Katakana, Thai, Lao,
    Myanmar, Khmer and Hangul form overlapping pairs within each run of one script; a run of one character is one term.

    Args:
        text: Any text; lone surrogates and control characters separate words.

    Returns:
        Terms of 1 to 64 characters; empty if the text contains nothing but stop words and punctuation.
    """
    if text.isascii():
        return terms_of(ascii_words(text))
    terms: list[str] = []
    for piece in pieces_of(text):
        for run, word in _FOLDED_WORD.findall(_without_wont(fold(piece))):
            if word:
                if term := _TERMS[word]:
                    terms.append(term)
            elif len(run) == 1:
                terms.append(run)
            else:
                terms.extend(run[i : i + 2] for i in range(len(run) - 1))
    return terms


def ascii_words(text: str) -> list[str]:
    """Return the words of a text of ASCII characters as they are analysed: in order, in lower case, still whole."""
    return _without_wont(text.lower()).encode().translate(_SPACED).decode().split()


def terms_of(words: Sequence[str]) -> list[str]:
    """Return the terms of `ascii_words`."""
    if max(map(len, words), default=0) > _LONGEST:
        words = [word[i : i + _LONGEST] for word in words for i in range(0, len(word), _LONGEST)]
    return list(filter(None, map(_TERMS.__getitem__, words)))


def stemmed(word: str) -> str:
    """Return the stem of a lower-case word, and a word with letters outside ASCII, which is not English, as it is."""
    return stem(word) if word.isascii() else word


def index_terms(text: str) -> list[str]:
    """Return the terms a record is indexed by: its terms, and each single Han character of a longer run.

    So a query of one such character ("\u8336", tea) finds the words that contain it; longer queries use pairs only.
    """
    terms = analyse(text)
    if text.isascii():
        return terms
    return terms + [
        character for piece in pieces_of(text) for run in _HAN_RUN.findall(fold(piece)) for character in run
    ]


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, in order of first appearance.

    Stop words are in no index, so a query of nothing else ("to be or not to be") has no terms and no lexical evidence
    anywhere: the answer is the empty list, and such a query can be served by vectors or by substring search only.
    """
    return list(dict.fromkeys(analyse(query)))


def words(text: str) -> int:
    """Return about how many words a text has: runs between spaces, and two characters each of unspaced scripts."""
    if text.isascii():
        return f" {text}".encode().translate(_SHAPE).count(b" x")
    return len(text.split()) + sum(len(_UNSEGMENTED_CHARACTER.findall(piece)) for piece in pieces_of(text)) // 2


def asks(text: str) -> bool:
    """Return whether the text asks a question, anywhere in it.

    Text or attachments may follow a question ("Do you sail? I do."), and the next turn still answers it.
    """
    if text.isascii() and "?" not in text:
        return False
    return _QUESTION_MARK.search(text) is not None


def pieces_of(text: str) -> Iterator[str]:
    """Split a long text where words end, or anywhere in a run of more than `_PIECE` characters without such a place."""
    start = 0
    while len(text) - start > _PIECE:
        end = max(text.rfind(mark, start, start + _PIECE) for mark in _ENDS) + 1
        stop = end if end > start else start + _PIECE
        yield text[start:stop]
        start = stop
        yield_now()
    yield text[start:]


def _without_wont(text: str) -> str:
    """Drop the contraction that would be read as another word."""
    return text.replace(MISREAD, " ")


class _Terms(dict[str, str]):
    """The term of each folded word, computed when first needed; empty for stop words."""

    _CAPACITY = 65536

    def __missing__(self, word: str) -> str:
        if word.isascii():
            term = "" if word in STOP_WORDS else stemmed(BASE_FORMS.get(word, word))
        else:
            term = stemmed(_ARTICLE.sub("", word))
        if len(self) < self._CAPACITY:
            self[word] = term
        return term


_TERMS = _Terms()
