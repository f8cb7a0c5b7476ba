"""Derive what a record is found by: its index terms, and flags for its kind of turn.

A record and a query go through the same `analyse`, so what it does to a word matters less than that it does it twice.
Words of segmented scripts are folded (case, width, ligatures, diacritics), stripped of English stop words, reduced to
their base form where English is irregular ("went" is "go") and stemmed by Porter's rules (`english.py`). Scripts
without spaces between words become overlapping pairs of characters. Text in other languages is folded and split, which
is safe, and finds exact word forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from memory_core.models import MemoryRecord
from memory_core.retrieval.english import BASE_FORMS, STOP_WORDS, stem
from memory_core.retrieval.time_expressions import format_date, has_time_expression, resolve
from memory_core.threads import yield_now

ANALYSIS: Final = 3
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

_QUESTION_MARK = re.compile(r"[?\uff1f\u061f\u2e2e\u2047\u2048\u2049\u203d\ufe56\u037e](?!\w)")
"""Question marks of all scripts; one followed by a letter is part of an address."""

_APOSTROPHES = "'\u02bb\u02bc\u2018\u2019\u201b\u2032"

_ARTICLE = re.compile(r"^(?:[\u0648\u0641\u0628\u0643]?\u0627\u0644|\u0644\u0644)(?=\w{3})")
"""The Arabic article, alone and joined to "and", "so", "in", "like" or "for", before at least three letters: a light
stemmer takes it off, too (Larkey, Ballesteros and Connell, SIGIR 2002)."""

_LETTERS = {
    "\u00e6": "ae",
    "\u00f0": "d",
    "\u00f8": "o",
    "\u00fe": "th",
    "\u0111": "d",
    "\u0127": "h",
    "\u0131": "i",
    "\u0142": "l",
    "\u0153": "oe",
    "\u0629": "\u0647",
    "\u0649": "\u064a",
}
"""Latin letters with a stroke and ligatures, which Unicode does not decompose; and two Arabic endings (teh marbuta,
alef maksura) that are as often written as heh and yeh."""


def analyse(text: str) -> list[str]:
    """Return the index terms of a text, in order, repeated terms repeated.

    Case, compatibility forms (full-width letters, ligatures) and the diacritics of Latin, Greek, Cyrillic, Hebrew and
    Arabic do not matter; marks that make another letter, such as Japanese voicing marks and Indic vowel signs, do.
    Composed and decomposed input give equal terms. Everything that is not a letter, digit or mark separates words,
    the underscore and the apostrophe included. Characters of Han, Hiragana, Katakana, Thai, Lao, Myanmar, Khmer and
    Hangul form overlapping pairs within each run of one script; a run of one character is one term.

    Args:
        text: Any text; lone surrogates and control characters separate words.

    Returns:
        Terms of 1 to 64 characters; empty if the text contains nothing but stop words and punctuation.
    """
    if text.isascii():
        return terms_of(ascii_words(text))
    terms: list[str] = []
    for piece in _pieces(text):
        for run, word in _FOLDED_WORD.findall(_without_wont(_fold(piece))):
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
    return terms + [character for piece in _pieces(text) for run in _HAN_RUN.findall(_fold(piece)) for character in run]


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
    return len(text.split()) + sum(len(_UNSEGMENTED_CHARACTER.findall(piece)) for piece in _pieces(text)) // 2


def asks(text: str) -> bool:
    """Return whether the text asks a question, anywhere in it.

    Text or attachments may follow a question ("Do you sail? I do."), and the next turn still answers it.
    """
    if text.isascii() and "?" not in text:
        return False
    return _QUESTION_MARK.search(text) is not None


def _pieces(text: str, size: int = _PIECE) -> Iterator[str]:
    """Split a long text where words end, or anywhere in a run of more than `size` characters without such a place."""
    start = 0
    while len(text) - start > size:
        end = max(text.rfind(mark, start, start + size) for mark in _ENDS) + 1
        stop = end if end > start else start + size
        yield text[start:stop]
        start = stop
        yield_now()
    yield text[start:]


def _without_wont(text: str) -> str:
    """Drop "won't", the one contraction whose first half is another word ("won")."""
    return text.replace("won't", " ")


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


def _fold(text: str) -> str:
    """Return the text in lower case, without diacritics, with spaces for all but letters, digits, marks and `'`."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text).translate(_FOLDED))


class _Folded(dict[int, str]):
    """The replacement of each code point of compatibility-decomposed text, computed when first needed."""

    _CAPACITY = 65536

    def __missing__(self, code: int) -> str:
        folded = _fold_character(chr(code))
        if len(self) < self._CAPACITY:
            self[code] = folded
        return folded


_FOLDED = _Folded()


def _fold_character(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" or character == "\u0640" or _is_diacritic(character):  # U+0640 stretches Arabic words
        return ""
    if character in _APOSTROPHES:
        return "'"
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category[0] not in "LNM":
        return " "
    lower = character.casefold()
    return _LETTERS.get(lower, lower)


def _is_diacritic(character: str) -> bool:
    """Return whether this is a mark that writers of its script often omit, or that only styles a symbol."""
    return (
        "\u0300" <= character <= "\u036f"  # Latin, Greek, Cyrillic
        or "\u0483" <= character <= "\u0489"  # Cyrillic
        or "\u0591" <= character <= "\u05c7"  # Hebrew points
        or "\u0610" <= character <= "\u061a"  # Arabic
        or "\u064b" <= character <= "\u065f"
        or character == "\u0670"
        or "\u06d6" <= character <= "\u06ed"
        or "\u1ab0" <= character <= "\u1aff"  # extensions of the first block
        or "\u1dc0" <= character <= "\u1dff"
        or "\u20d0" <= character <= "\u20ff"
        or "\ufe00" <= character <= "\ufe0f"  # variation selectors
        or "\ufe20" <= character <= "\ufe2f"
    )


TERM_BYTES: Final = 5
"""A term is stored as this many bytes of its hash, see `postings.py`."""
TOGETHER: Final = 2_000
"""Terms packed in one step, which takes a few milliseconds."""


class _Hashes(dict[str, bytes]):
    """Hashes by term, computed when first needed, since terms recur."""

    _CAPACITY = 65_536

    def __missing__(self, term: str) -> bytes:
        digest = blake2b(term.encode(), digest_size=TERM_BYTES).digest()
        if len(self) < self._CAPACITY:
            self[term] = digest
        return digest


HASH_OF: Final = _Hashes()


def pack(terms: Iterable[str]) -> bytes:
    """Pack analysed terms for `Postings`; order and repetitions are kept."""
    left, parts = iter(terms), list[bytes]()
    while part := b"".join(map(HASH_OF.__getitem__, islice(left, TOGETHER))):
        parts.append(part)
        if len(part) == TOGETHER * TERM_BYTES:
            yield_now()
    return b"".join(parts)


QUESTION: Final = 1
"""Flag: the text asks something, so the next turn probably answers it."""
TIMED: Final = 2
"""Flag: the text names a time, so it may answer a question that asks when."""

FROM_USER: Final = 4
"""Flag: the role is `user`."""
FROM_ASSISTANT: Final = 8
"""Flag: the role is `assistant`."""


class Features(NamedTuple):
    """The features of a record that the ranking uses."""

    packed: bytes
    """The terms (`terms_of_record`) in the form of `pack`."""
    flags: int
    words: int


def features(record: MemoryRecord) -> Features:
    """Analyse a record."""
    text = record.text
    if not text:
        return Features(b"", 0, 0)
    if text.isascii() and "_" not in text and (record.author is None or record.author.isascii()):
        found = ascii_words(text)  # split once for all steps, whose patterns match such words
        if len(found) > TOGETHER:
            yield_now()
        dates = resolve(text, record.occurred_at, found)
        packed = _packed_head(record.occurred_at.date(), record.author)
        packed += _packed(found)
        packed += pack(index_terms(" ".join(dates))) if dates else b""
        timed = has_time_expression(text, found)
    else:
        packed, timed = pack(terms_of_record(record)), has_time_expression(text)
    return Features(packed, (QUESTION if asks(text) else 0) | (TIMED if timed else 0), words(text))


def _packed(words: Sequence[str]) -> bytes:
    parts: list[bytes] = []
    for start in range(0, len(words), TOGETHER):
        if start:
            yield_now()
        parts.append(b"".join(map(_packed_words.__getitem__, words[start : start + TOGETHER])))
    return b"".join(parts)


def terms_of_record(record: MemoryRecord) -> list[str]:
    """The analysed terms in order: date, author, text, and resolved relative dates.

    The date and the author count as part of the text because questions name them (each adds about two points of recall
    on conversations).
    """
    text = record.text
    head = _head(record.occurred_at, record.author)
    return index_terms(f"{head} {text} {' '.join(resolve(text, record.occurred_at))}") if text else []


def _head(day: date, author: str | None) -> str:
    return f"{format_date(day)} {author or ''}"


@lru_cache(maxsize=256)
def _packed_head(day: date, author: str | None) -> bytes:
    """Cached, because a conversation has few dates and authors."""
    return pack(index_terms(_head(day, author)))


class _PackedWords(dict[str, bytes]):
    """The packed terms of each word that `ascii_words` returns, computed when first needed."""

    _CAPACITY = 65_536
    _LONGEST = 32

    def __missing__(self, word: str) -> bytes:
        packed = pack(terms_of((word,)))
        if len(self) < self._CAPACITY and len(word) <= self._LONGEST:
            self[word] = packed
        return packed


_packed_words: Final = _PackedWords()


def is_turn(kind: str, role: str | None) -> bool:
    """Whether a record is a turn of its session's conversation; a fact is not, whatever session it came from."""
    return role is not None or kind == "message"


def role_flag(role: str | None) -> int:
    """The flag of a role, 0 for others."""
    return {"user": FROM_USER, "assistant": FROM_ASSISTANT}.get(role or "", 0)
