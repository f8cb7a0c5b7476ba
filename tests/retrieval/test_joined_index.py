"""Indexes that are read together rank like one index with all their rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.models import Mode
from memory_core.requests import SearchRequest
from memory_core.retrieval.cosine_scale import Unrelated
from memory_core.retrieval.features import QUESTION
from memory_core.retrieval.joined_index import joined
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import rank
from memory_core.retrieval.term_hashes import pack
from memory_core.retrieval.unit_vectors import unit_rows
from memory_core.storage.shared.query_vector import Compared, Vector
from memory_core.storage.sqlite.row_cosines import row_cosines, similarities
from memory_core.where.where import Where

DIMENSIONS, NOW = 8, 1_000
MANY_DIMENSIONS = 384
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")
QUERIES = ("When did Ann see the boat?", "What did you say to me about tea?", "boat pier tea kettle", "walrus")
REQUEST = SearchRequest(text="", limit=20, mode="hybrid", where=Where(), explain=False)

Row = tuple[Entry, tuple[bytes, ...]]


@st.composite
def rows(draw: st.DrawFn) -> Sequence[Row]:
    """Rows with keys from 0 on; a row has no vector, one or two."""
    texts = draw(st.lists(st.lists(st.sampled_from(("boat", "pier", "tea", "kettl", "ann")), max_size=6), max_size=14))
    made: list[Row] = []
    for key, words in enumerate(texts):
        entry = Entry(
            key=key,
            terms=pack(words),
            flags=draw(st.sampled_from((0, QUESTION, 4, 8, 4 | QUESTION))),
            words=draw(st.integers(0, 250)),
            session=draw(st.sampled_from((None, "s1", "s2", "s3"))),
            author=draw(st.sampled_from((None, "Ann", "Tom Field"))),
            occurred_at=draw(st.integers(0, 5)) * 86_400_000_000,
            expires_at=draw(st.sampled_from((None, None, NOW - 1, NOW + 1))),
            active=draw(st.integers(0, 5)) > 0,
        )
        numbers = draw(st.lists(st.integers(-9, 9), min_size=DIMENSIONS, max_size=DIMENSIONS))
        vectors = unit_rows(np.array([numbers, numbers[::-1]], np.float32) + np.float32(0.5)).astype(np.float16)
        made.append((entry, tuple(vector.tobytes() for vector in vectors[: draw(st.sampled_from((0, 1, 1, 2)))])))
    return made


def index_of(some: Sequence[Row], gone: Sequence[int] = ()) -> OwnerIndex:
    index = OwnerIndex(DIMENSIONS)
    for place, (entry, vectors) in enumerate(some):  # one by one, and then in bulk: what is recent is in lists
        if place < 2:
            index.extend([entry], [(entry.key, vector) for vector in vectors])
    rest = some[2:]
    index.extend([entry for entry, _ in rest], [(entry.key, vector) for entry, all_ in rest for vector in all_])
    index.remove(gone)
    return index


def ranking(index: OwnerIndex, text: str, mode: Mode, bounds: Sequence[int]) -> list[tuple[int, float, float | None]]:
    """Keys, scores and cosines of the hits among these keys."""
    request, query = replace(REQUEST, mode=mode, floor=mode == "hybrid"), parse(text)
    direction = unit_rows(np.arange(1, (index.dimensions or 1) + 1, dtype=np.float32)[None])[0]
    vector = None if mode == "lexical" else Vector(direction, Compared(direction, Unrelated(mean=0.1, spread=0.2)))
    allowed = np.flatnonzero(np.isin(index.keys.values, bounds)).astype(np.int32) if bounds else None
    cosines = row_cosines(index, vector, request, now=NOW, allowed=allowed)
    found = rank(index, query, cosines, request, now=NOW, allowed=allowed)
    shown = similarities(index, vector, cosines, request, found.rows)
    keys = index.keys.values[found.rows].tolist()
    return list(zip(keys, found.scores.tolist(), shown, strict=True))


@given(
    every=rows(),
    places=st.lists(st.integers(0, 2), min_size=14, max_size=14),
    gone=st.sets(st.integers(0, 13), max_size=4),
    bounds=st.sets(st.integers(0, 13), max_size=8),
)
def test_a_row_ranks_as_if_one_owner_had_them_all(
    every: Sequence[Row], places: list[int], gone: set[int], bounds: set[int]
) -> None:
    together = joined(
        [
            index_of([row for row, place in zip(every, places, strict=False) if place == number], sorted(gone))
            for number in range(3)
        ]
    )
    whole = index_of(every, sorted(gone))
    assert len(together) == len(whole)
    assert together.living == whole.living
    for text in QUERIES:
        for mode in MODES:
            found, expected = (ranking(one, text, mode, sorted(bounds)) for one in (together, whole))
            assert [key for key, _, _ in found] == [key for key, _, _ in expected]
            assert [score for _, score, _ in found] == pytest.approx([score for _, score, _ in expected], abs=1e-4)
            assert [cosine for _, _, cosine in found] == pytest.approx([cosine for _, _, cosine in expected], abs=1e-6)


def test_vectors_and_postings_are_not_copied() -> None:
    """A reader of a large space costs the small columns only, and only while it searches."""
    dice = np.random.default_rng(1)
    vectors = unit_rows(dice.normal(size=(3_000, MANY_DIMENSIONS)).astype(np.float32)).astype(np.float16)
    entries = [Entry(n, pack([f"w{n % 99}"] * 9), 0, 9, None, None, n, None, active=True) for n in range(3_000)]
    large, own = OwnerIndex(MANY_DIMENSIONS), OwnerIndex(MANY_DIMENSIONS)
    large.extend(entries, [(n, vectors[n].tobytes()) for n in range(3_000)])
    tracemalloc.start()
    try:
        assert len(ranking(joined([own, large]), "tea", "vector", ())) == REQUEST.limit
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < large.nbytes / 5


def test_a_joined_index_knows_the_clock_times_of_its_parts() -> None:
    parts = OwnerIndex(None), OwnerIndex(None)
    for part, offset in zip(parts, (540, -420), strict=True):
        part.extend([Entry(1, pack(["boat"]), 0, 1, None, None, 0, None, active=True, offset=offset)], ())
    assert joined(parts).local_times().tolist() == [540 * 60_000_000, -420 * 60_000_000]
