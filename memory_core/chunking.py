"""Splitting a long text into pieces, so that every part of it gets its own vector.

A chunker returns offsets, so a piece can be shown exactly as it is in the text. Pieces may overlap; together they
cover the whole text except white space between them. A form feed ends a piece, whatever the chunker: so every passage
of a draft (`Draft.passages`) has pieces, and vectors, of its own, and they stay with the text wherever it is copied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, Protocol

from memory_core.concurrency.threads import yield_now
from memory_core.errors import InvalidInputError
from memory_core.models import PASSAGE_END
from memory_core.values.graphemes import boundary_after, boundary_before
from memory_core.values.limits import MAX_PASSAGES

CHUNK_CHARS: Final = 900
"""About 200 tokens of English; the default model reads 256."""
WINDOW_SIZE: Final = 512
WINDOW_OVERLAP: Final = 50
"""In tokens; common defaults for models with a window of this size. The default model reads 256."""

Span = tuple[int, int]
"""Start and stop of a piece: `text[start:stop]`."""

_SENTENCE_END: Final = re.compile(r"[.!?…。！？]['\")\]]*\s+|\n+")  # noqa: RUF001  (full-width marks end sentences too)
_SPACE: Final = re.compile(r"\s+")
_TOKEN: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]"
    r"|\w{1,16}|[^\w\s]"
)


class Chunker(Protocol):
    """Splits texts into pieces."""

    def split(self, text: str) -> Sequence[Span]:
        """The pieces, ascending by start and by stop; no piece is empty, and an empty text has no pieces.

        The same text must always give the same pieces.
        """
        ...


@dataclass(frozen=True, slots=True)
class SentenceChunker:
    """Pieces of as many whole sentences as fit."""

    max_chars: int = CHUNK_CHARS
    """Maximum length of a piece, at least 1. If no sentence ends in its second half, a piece ends at a space, else at
    the maximum; a single character that is longer (an emoji of many code points) stays whole."""

    def __post_init__(self) -> None:
        _check_whole("max_chars", self.max_chars, least=1)

    def split(self, text: str) -> list[Span]:
        """See `Chunker.split`."""
        return split(text, self.max_chars)


@dataclass(frozen=True, slots=True)
class TokenChunker:
    """Windows of a fixed number of tokens, each beginning with the last tokens of the previous window.

    The last window always extends beyond the previous one. No character is split: a window whose edge falls inside a
    character includes all of it.

    Raises:
        InvalidInputError: The overlap is as large as the window.
    """

    window_size: int = WINDOW_SIZE
    """Tokens per window, at least 1."""
    window_overlap: int = WINDOW_OVERLAP
    """Tokens shared with the previous window, fewer than `window_size`."""
    _: KW_ONLY
    tokens: Callable[[str], Sequence[Span]] | None = None
    """Returns the spans of a text's tokens, ascending; by default words (long ones in parts of 16 characters),
    punctuation marks, and single characters of scripts without spaces. For exact windows pass your model's
    tokenizer."""

    def __post_init__(self) -> None:
        _check_whole("window_size", self.window_size, least=1)
        _check_whole("window_overlap", self.window_overlap, least=0)
        if self.window_overlap >= self.window_size:
            raise InvalidInputError(
                f"window_overlap {self.window_overlap} must be smaller than window_size {self.window_size}; reduce the "
                "overlap"
            )

    def split(self, text: str) -> list[Span]:
        """See `Chunker.split`."""
        if not text:
            return []
        spans = (self.tokens or token_spans)(text)
        if len(spans) <= self.window_size:
            return [(0, len(text))]
        step = self.window_size - self.window_overlap
        pieces: list[Span] = []
        for n in range(0, len(spans) - self.window_overlap, step):
            window = spans[n : n + self.window_size]
            last, reached = pieces[-1] if pieces else (0, 0)
            if window[-1][1] <= reached:  # inside a character that the previous window includes
                continue
            start = boundary_before(text, window[0][0], last)
            stop = boundary_after(text, window[-1][1], start)
            if pieces and start <= last:
                pieces.pop()
            pieces.append((start, stop))
        return pieces


def split(text: str, size: int = CHUNK_CHARS) -> list[Span]:
    """The pieces of `SentenceChunker(size)`; they cover all of the text and do not overlap."""
    pieces: list[Span] = []
    start = 0
    while len(text) - start > size:
        yield_now()
        stop = _last_end(_SENTENCE_END, text, start + size // 2, start + size)
        stop = stop or _last_end(_SPACE, text, start + size // 2, start + size) or start + size
        whole = boundary_before(text, stop, start)
        stop = whole if whole > start else boundary_after(text, stop, start)
        pieces.append((start, stop))
        start = stop
    if start < len(text):
        pieces.append((start, len(text)))
    return pieces


def token_spans(text: str) -> list[Span]:
    """The default tokens of `TokenChunker`."""
    return [match.span() for match in _TOKEN.finditer(text)]


def pieces_of(text: str, chunker: Chunker) -> Sequence[Span]:
    """The pieces that the chunker returns for a text, checked; a form feed ends a piece.

    Raises:
        InvalidInputError: The chunker omits a part of the text, or returns invalid offsets.
    """
    if PASSAGE_END not in text:
        return _checked_pieces(text, chunker)
    pieces: list[Span] = []
    first = 0
    for passage in text.split(PASSAGE_END, MAX_PASSAGES - 1):
        yield_now()
        if passage.strip():
            pieces += [(first + start, first + stop) for start, stop in _checked_pieces(passage, chunker)]
        first += len(passage) + 1
    return pieces or _checked_pieces(text, chunker)


def _checked_pieces(text: str, chunker: Chunker) -> Sequence[Span]:
    pieces = chunker.split(text)
    start = stop = 0
    for n, (begin, end) in enumerate(pieces):
        if not (start <= begin < end <= len(text) and end > stop) or (n and begin == start) or text[stop:begin].strip():
            raise InvalidInputError(f"{chunker!r} cut a text of {len(text)} characters at {(begin, end)} after {stop}")
        start, stop = begin, end
    if text[stop:].strip():
        raise InvalidInputError(f"{chunker!r} omitted the text after position {stop}; its pieces must cover all of it")
    return pieces


def _last_end(pattern: re.Pattern[str], text: str, start: int, stop: int) -> int | None:
    return max((match.end() for match in pattern.finditer(text, start, stop)), default=None)


def _check_whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInputError(f"{name} must be a whole number of at least {least}, not {value!r}")


DEFAULT_CHUNKER: Final = SentenceChunker()
"""Whole sentences, up to 900 characters per piece."""
