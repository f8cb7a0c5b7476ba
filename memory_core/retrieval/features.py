"""The features of a record that the ranking knows: its terms, its length, and flags for its kind of turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from memory_core.concurrency.threads import yield_now
from memory_core.local_time import local_day
from memory_core.models import MemoryRecord
from memory_core.retrieval.analysis import ascii_words, asks, index_terms, terms_of, words
from memory_core.retrieval.other_languages import is_in_another_language
from memory_core.retrieval.term_hashes import TOGETHER, pack
from memory_core.retrieval.time_expressions import format_date, resolve

QUESTION: Final = 1
"""Flag: the text asks something, so the next turn probably answers it."""
FROM_USER: Final = 4
"""Flag: the role is `user`."""
FROM_ASSISTANT: Final = 8
"""Flag: the role is `assistant`."""
OTHER_LANGUAGE: Final = 16
"""Flag: the text is surely in another language than English."""


class Features(NamedTuple):
    """The features of a record that the ranking uses."""

    packed: bytes
    """The terms (`terms_of_record`) in the form of `pack`."""
    flags: int
    words: int


def features(record: MemoryRecord) -> Features:
    """Analyse a record.

    The words of a text in ASCII are split once and remembered as they are packed: 23 µs of processor time a record
    instead of 30 (1,610 records of the corpora), where all of an add in bulk takes about 45 without a model.
    """
    text = record.text
    if not text:
        return Features(b"", 0, 0)
    if text.isascii() and "_" not in text and (record.author is None or record.author.isascii()):
        found = ascii_words(text)  # split once for all steps, whose patterns match such words
        if len(found) > TOGETHER:
            yield_now()
        dates = resolve(text, local_day(record), found)
        packed = _packed_head(local_day(record), record.author)
        packed += _packed(found)
        packed += pack(index_terms(" ".join(dates))) if dates else b""
    else:
        packed = pack(terms_of_record(record))
    flags = (QUESTION if asks(text) else 0) | (OTHER_LANGUAGE if is_in_another_language(text) else 0)
    return Features(packed, flags, words(text))


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
    head = _head(local_day(record), record.author)
    return index_terms(f"{head} {text} {' '.join(resolve(text, local_day(record)))}") if text else []


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


def role_flag(role: str | None) -> int:
    """The flag of a role, 0 for others."""
    return {"user": FROM_USER, "assistant": FROM_ASSISTANT}.get(role or "", 0)
