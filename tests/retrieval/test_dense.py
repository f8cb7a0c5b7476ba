"""Cosines of one query with all vectors of an owner, with and without int8 blocks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from memory_core.retrieval import dense
from memory_core.retrieval.dense import BLOCK, SHARED_FROM, SMALLEST_BLOCK, Dense, chance

DIMENSIONS = 48


def unit(count: int, seed: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((count, DIMENSIONS))
    rounded: NDArray[np.float16] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    return rounded.astype(np.float32)


def test_a_row_has_the_best_cosine_of_its_vectors_and_nan_without_one() -> None:
    vectors, query = unit(4, 1), unit(1, 2)[0]
    held = Dense(DIMENSIONS)
    held.extend(vectors, [0, 2, 2, 3])
    expected = vectors @ query
    found = held.cosines(query, 5)
    assert found[[0, 2, 3]] == pytest.approx([expected[0], max(expected[1:3]), expected[3]], abs=1e-6)
    assert np.isnan(found[[1, 4]]).all()


def test_a_piece_behind_the_first_has_to_stand_out_by_what_chance_gives() -> None:
    vectors, query = unit(6, 1), unit(1, 2)[0]
    held = Dense(DIMENSIONS)
    held.extend(vectors[:3], [0, 1, 1])
    held.extend(vectors[3:], [1, 1, 2])
    cosines, spread = vectors @ query, 0.1
    found = held.cosines(query, 3, spread)
    assert found[[0, 2]] == pytest.approx(cosines[[0, 5]], abs=1e-6)  # of one piece
    assert found[1] == pytest.approx(max(cosines[1], max(cosines[2:5]) - spread * chance(4)), abs=1e-6)
    assert chance(4) == pytest.approx(np.sqrt(2 * np.log(4)))
    assert chance(1) == chance(0) == 0.0


def test_a_few_rows_among_many_have_the_cosines_they_have_among_all() -> None:
    vectors, query = unit(300, 1), unit(1, 2)[0]
    held = Dense(DIMENSIONS)
    held.extend(vectors, [row for row in range(200) for _ in range(row % 4)][: len(vectors)])
    few = np.array([3, 4, 50, 51, 120, 199])  # the rows 4 and 120 have no vector
    found, expected = held.cosines_of(query, few), held.cosines(query, 200)[few]
    assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert list(np.isnan(found)) == [False, True, False, False, True, False]
    assert len(held.cosines_of(query, np.empty(0, np.int64))) == 0
    one_each = Dense(DIMENSIONS)
    one_each.extend(vectors[:100], range(100))
    found = one_each.cosines_of(query, np.array([7, 99, 100]))  # the last row's vector is pending
    assert found == pytest.approx([*(vectors[[7, 99]] @ query), np.nan], abs=1e-6, nan_ok=True)
    assert one_each.cosines_of(query, np.array([7, 99])) == pytest.approx(found[:2], abs=1e-6)


@pytest.mark.parametrize("scan", ["int8", "float32"])
def test_the_best_of_many_vectors_are_exact(scan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if scan == "int8":
        pytest.importorskip("numkong", reason="the accel extra is not installed")
    else:
        monkeypatch.setattr(dense, "_has_numkong", lambda: False)
    monkeypatch.setattr(dense, "cores", lambda: 2)  # so that there is a second thread in either case
    vectors = unit(SHARED_FROM * BLOCK + 17, 3)
    held = Dense(DIMENSIONS)
    for start in range(0, len(vectors), 5_000):  # blocks are made of whatever arrived
        part = vectors[start : start + 5_000]
        held.extend(part, range(start, start + len(part)))
        held.cosines(unit(1, 4)[0], start + len(part), nearest=10)
    held.cosines(unit(1, 4)[0], len(vectors), nearest=10)  # blocks are made of what was scanned before
    for seed in range(5, 15):
        query = unit(1, seed)[0]
        expected, found = vectors @ query, held.cosines(query, len(vectors), nearest=10)
        best = np.argsort(-expected)[:10]
        assert list(np.argsort(-found)[:10]) == list(best)
        assert found[best] == pytest.approx(expected[best], abs=1e-6)
        assert np.abs(found - expected).max() < 0.02


def test_an_owner_that_grows_is_scanned_as_int8_and_its_best_are_exact() -> None:
    pytest.importorskip("numkong", reason="the accel extra is not installed")
    vectors, query = unit(BLOCK + 2_000, 3), unit(1, 4)[0]
    held = Dense(DIMENSIONS)
    sizes = [100, SMALLEST_BLOCK, SMALLEST_BLOCK + 1, 900, 1_100, 2_300, BLOCK, BLOCK + 300, BLOCK + 900, len(vectors)]
    for first, size in itertools.pairwise([0, *sizes]):
        held.extend(vectors[first:size], range(first, size))
        for _ in range(2):  # the second scan makes blocks of what the first has seen
            expected, found = vectors[:size] @ query, held.cosines(query, size, nearest=10)
            best = np.argsort(-expected)[:10]
            assert list(np.argsort(-found)[:10]) == list(best)
            assert found[best] == pytest.approx(expected[best], abs=1e-6)
            assert np.abs(found - expected).max() < 0.02
    assert held.nbytes > held._vectors.nbytes + len(vectors) * DIMENSIONS * 0.9
