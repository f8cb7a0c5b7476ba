"""The cosines that the SQLite store computes for the ranking and shows with a hit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core.requests import SearchRequest
from memory_core.retrieval.cosine_scale import Unrelated
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.unit_vectors import unit_rows
from memory_core.storage.shared.query_vector import Compared, Vector
from memory_core.storage.sqlite.row_cosines import row_cosines, similarities
from memory_core.where.where import Where

SIZE, DIMENSIONS = 200, 16
PENDING = 7
LONG = 9
"""A row of three pieces."""

VECTORS = unit_rows(np.random.default_rng(1).normal(size=(SIZE + 2, DIMENSIONS)).astype(np.float32))
HYBRID = SearchRequest(text="", limit=5, mode="hybrid", where=Where(), explain=False)
VECTOR = replace(HYBRID, mode="vector")
QUERY = Vector(VECTORS[0], Compared(VECTORS[0], Unrelated(mean=0.1, spread=0.2)))


def owner_index() -> OwnerIndex:
    made = OwnerIndex(DIMENSIONS)
    entries = [Entry(n, b"", 0, 0, None, None, 0, None, active=True) for n in range(SIZE)]
    keys = [n for row in range(SIZE) for n in [row] * (0 if row == PENDING else 3 if row == LONG else 1)]
    halves = VECTORS.astype(np.float16)
    made.extend(entries, [(key, halves[n].tobytes()) for n, key in enumerate(keys)])
    return made


def cosines_of(
    index: OwnerIndex, request: SearchRequest, allowed: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    found = row_cosines(index, QUERY, request, now=0, allowed=allowed)
    assert found is not None
    assert len(found.values) == SIZE
    return found.values


def test_a_search_by_vectors_alone_has_the_same_cosines_for_few_rows_and_for_many() -> None:
    index, request = owner_index(), VECTOR
    few = np.array([3, PENDING, LONG, 150])
    alone = cosines_of(index, request, few)
    np.testing.assert_allclose(alone[few], cosines_of(index, request)[few], atol=1e-6)
    assert np.isnan(np.delete(alone, few)).all()
    assert np.isnan(alone[PENDING])


def test_the_best_of_several_pieces_has_a_handicap_in_the_ranking_and_none_in_the_hit() -> None:
    index, rows = owner_index(), np.array([LONG, PENDING])
    assert cosines_of(index, HYBRID)[LONG] < cosines_of(index, VECTOR)[LONG]
    shown = [
        similarities(index, QUERY, row_cosines(index, QUERY, one, now=0, allowed=None), one, rows)
        for one in (HYBRID, VECTOR)
    ]
    assert shown[0][1] is shown[1][1] is None
    assert shown[0][0] == pytest.approx(shown[1][0], abs=1e-6)


def test_without_a_vector_there_are_no_cosines() -> None:
    index, request = owner_index(), HYBRID
    assert row_cosines(index, None, request, now=0, allowed=None) is None
    assert similarities(index, None, None, request, np.array([1, 2])) == [None, None]
