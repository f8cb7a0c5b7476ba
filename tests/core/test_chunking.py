"""Cutting texts: nothing is lost, nothing torn apart, nothing said twice without reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from memory_core import (
    BoundMemory,
    Chunker,
    Draft,
    InvalidInputError,
    Memory,
    Patch,
    SentenceChunker,
    TokenChunker,
    run_sync,
)
from memory_core.chunking import DEFAULT_CHUNKER, Span, pieces_of, token_spans
from memory_core.storage.qdrant.store import QdrantStore
from memory_core.testing import ChunkerContract, Ticks
from memory_core.values.graphemes import boundary_after, boundary_before, is_boundary
from tests.storage.embedders import WordEmbedder

ODD = "e\u0301 👩‍👩‍👧 🇫🇷🇩🇪 한글 ㄱ ᄒ\u1161\u11ab \r\n क्षि நி ำ 🏴\U000e0067\U000e007f 👍🏽 \u0600\u200d. 。"
TEXTS = st.text(
    st.sampled_from(ODD) | st.sampled_from("ab. \n") | st.characters(codec="utf-8", exclude_categories=["Cn", "Co"]),
    max_size=80,
)
SIZES = st.integers(1, 9)
OVERLAPS = st.integers(0, 8)


@given(TEXTS)
def test_every_place_that_may_be_cut_is_between_characters(text: str) -> None:
    clusters = regex.findall(r"\X", text)
    places = {sum(map(len, clusters[:n])) for n in range(len(clusters) + 1)}
    for at in range(len(text) + 1):
        if is_boundary(text, at):
            assert at in places, ascii(text)
        assert boundary_before(text, at) <= at <= boundary_after(text, at)


def test_plain_text_may_be_cut_anywhere_and_flags_between_pairs() -> None:
    assert all(is_boundary("plain, text", at) for at in range(12))
    assert [at for at in range(9) if is_boundary("🇫🇷🇩🇪🇳🇴🇸🇪", at)] == [0, 2, 4, 6, 8]


CONSONANTS = "\u0915\u0937", "\u0995\u09b7", "\u0a95\u0ab7", "\u0c15\u0c37"
VIRAMAS = "\u094d", "\u09cd", "\u0acd", "\u0c4d"


@pytest.mark.parametrize(("consonants", "virama"), list(zip(CONSONANTS, VIRAMAS, strict=True)))
def test_consonants_that_a_virama_fuses_are_one_character(consonants: str, virama: str) -> None:
    """Also those of Gujarati and Telugu, beside Devanagari and Bengali; without the sign they are two."""
    first, second = consonants[0], consonants[1]
    fused = f"{first}{virama}{second}"
    assert [at for at in range(4) if is_boundary(fused, at)] == [0, 3]
    assert (boundary_before(fused, 2), boundary_after(fused, 1)) == (0, 3)
    assert is_boundary(consonants, 1)
    assert is_boundary(f"{fused}{second}", 3)


def test_a_form_feed_ends_a_piece_and_blank_parts_have_none() -> None:
    text = "Tea. Milk.\f \fA cat\f"
    assert [text[start:stop] for start, stop in pieces_of(text, DEFAULT_CHUNKER)] == ["Tea. Milk.", "A cat"]
    assert [text[start:stop] for start, stop in pieces_of(text, SentenceChunker(5))] == ["Tea. ", "Milk.", "A cat"]
    assert list(pieces_of("\f", DEFAULT_CHUNKER)) == [(0, 1)]  # every text has a piece


def test_of_a_thousand_form_feeds_the_rest_is_one_part() -> None:
    assert len(pieces_of("\f".join("x" * 1_200), DEFAULT_CHUNKER)) == 1_000


@given(st.lists(st.text(st.sampled_from("ab. \n\f"), max_size=30), max_size=8), SIZES)
def test_pieces_stay_within_their_passages(passages: list[str], size: int) -> None:
    text = "\f".join(passages)
    pieces = pieces_of(text, SentenceChunker(size))
    if text.strip():
        assert not any("\f" in text[start:stop] for start, stop in pieces)
    assert "".join("".join(text[start:stop] for start, stop in pieces).split()) == "".join(text.split())


def whole(text: str, pieces: Sequence[Span]) -> bool:
    clusters = regex.findall(r"\X", text)
    places = {sum(map(len, clusters[:n])) for n in range(len(clusters) + 1)}
    return all({start, stop} <= places for start, stop in pieces)


@given(TEXTS, SIZES)
def test_sentences_cover_the_text_without_overlap(text: str, size: int) -> None:
    text = text.replace("\f", " ")  # which ends a piece and belongs to none
    pieces = pieces_of(text, SentenceChunker(size))
    assert "".join(text[start:stop] for start, stop in pieces) == text
    assert whole(text, pieces)
    for start, stop in pieces:
        assert stop - start <= size or boundary_after(text, start + 1, start) == stop


@given(TEXTS, SIZES, OVERLAPS)
def test_windows_cover_the_text_and_none_lies_inside_another(text: str, size: int, overlap: int) -> None:
    if overlap >= size:
        with pytest.raises(InvalidInputError, match="must be smaller"):
            TokenChunker(size, overlap)
        return
    pieces = pieces_of(text, TokenChunker(size, overlap))
    assert whole(text, pieces)
    for one, other in pairwise(pieces):
        assert one[0] < other[0] <= max(one[1], other[0])
        assert one[1] < other[1]
        if overlap == 0:
            assert not text[one[1] : other[0]].strip()


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), SIZES, OVERLAPS)
def test_windows_of_plain_words_hold_as_many_as_they_should(words: list[str], size: int, overlap: int) -> None:
    overlap = min(overlap, size - 1)
    text = " ".join(words)
    windows = [text[start:stop].split() for start, stop in TokenChunker(size, overlap).split(text)]
    assert all(len(window) == size for window in windows[:-1])
    assert [word for n, window in enumerate(windows) for word in window[overlap if n else 0 :]] == words
    assert len(windows) == 1 + -(-max(len(words) - size, 0) // (size - overlap))  # no tail that says nothing new


@given(TEXTS)
def test_tokens_cover_what_can_be_seen(text: str) -> None:
    rest = list(text)
    for start, stop in token_spans(text):
        assert 0 < stop - start <= 16
        rest[start:stop] = " " * (stop - start)
    assert not "".join(rest).strip()


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "9"], ids=repr)
def test_sizes_that_make_no_sense_are_refused(wrong: int) -> None:
    for make in (lambda: SentenceChunker(wrong), lambda: TokenChunker(wrong)):
        with pytest.raises(InvalidInputError, match="at least 1"):
            make()


class Fixed:
    """A chunker that always answers the same."""

    def __init__(self, *pieces: Span) -> None:
        self._pieces = pieces

    def split(self, text: str) -> Sequence[Span]:
        return self._pieces


@pytest.mark.parametrize(
    "chunker",
    [
        Fixed(),
        Fixed((0, 4)),
        Fixed((4, 9)),
        Fixed((0, 4), (6, 9)),
        Fixed((0, 9), (0, 9)),
        Fixed((0, 99)),
        Fixed((3, 3)),
    ],
    ids=["nothing", "end", "start", "hole", "twice", "beyond", "empty"],
)
def test_a_chunker_that_loses_text_is_refused_before_anything_is_stored(chunker: Chunker) -> None:
    with Memory(":memory:", embedder=None, chunker=chunker) as memory:
        ann = memory.bind(user="ann")
        with pytest.raises(InvalidInputError, match="Fixed object"):
            run_sync(ann.add, "green tea")
        assert run_sync(ann.stats).records == 0


@pytest.mark.parametrize("kind", ["sqlite", "qdrant"])
def test_the_memory_cuts_with_the_chunker_it_was_given(kind: str) -> None:
    chunker = TokenChunker(10, 2)
    embedder, clock = WordEmbedder(), Ticks()
    store = ":memory:" if kind == "sqlite" else QdrantStore(":memory:", embedder=embedder, clock=clock, chunker=chunker)
    words = [f"word{n}" for n in range(80)]
    with Memory(store, embedder=embedder, clock=clock, chunker=chunker) as memory:
        ann = memory.bind(user="ann")
        record = run_sync(ann.add, Draft(" ".join(words), source_key="k"))
        assert [text.split() for text in embedder.embedded] == [words[n : n + 10] for n in range(0, 78, 8)]
        for mode in ("vector", "hybrid", "lexical"):
            (hit,) = run_sync(ann.search, "word25 word26 word27", mode=mode)
            assert hit.passage is not None
            assert hit.passage.text.split() == words[24:34] if mode != "vector" else "word25" in hit.passage.text
        for change in (
            lambda: run_sync(ann.add, Draft(" ".join(words[:30]), source_key="k")),
            lambda: run_sync(ann.update, record.id, Patch(text=" ".join(words[30:]))),
            lambda: run_sync(ann.put_many, [Draft(" ".join(words[10:40]), source_key="k")]),
        ):
            embedder.embedded.clear()
            change()
            settle(ann)
            assert embedder.embedded
            assert all(len(text.split()) <= 10 for text in embedder.embedded)


def settle(handle: BoundMemory) -> None:
    """Wait until no vector is owed."""
    while run_sync(handle.stats).vectors_pending:
        time.sleep(0.01)


def test_what_was_cut_otherwise_keeps_its_pieces(tmp_path: Path) -> None:
    """Vectors owed by an earlier process are those of the pieces it made."""
    path, words = tmp_path / "memory.db", [f"word{n}" for n in range(80)]
    with Memory(path, embedder=None, chunker=TokenChunker(10, 2)) as memory:
        run_sync(memory.bind(user="ann").add, " ".join(words))
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        ann = memory.bind(user="ann")
        run_sync(memory.reembed, embedder)
        assert [text.split() for text in embedder.embedded] == [words[n : n + 10] for n in range(0, 78, 8)]
        (hit,) = run_sync(ann.search, "word25 word26 word27")
        assert hit.passage is not None
        assert hit.passage.text.split() == words[24:34]


class TestSentences(ChunkerContract):
    @pytest.fixture
    def chunker(self) -> Chunker:
        return SentenceChunker(40)


class TestWindows(ChunkerContract):
    @pytest.fixture
    def chunker(self) -> Chunker:
        return TokenChunker(20, 5)


class TestDefault(ChunkerContract):
    @pytest.fixture
    def chunker(self) -> Chunker:
        return DEFAULT_CHUNKER
