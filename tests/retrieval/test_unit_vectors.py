"""Whatever becomes a vector is of finite numbers, of the right size and of length 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from memory_core import InvalidInputError
from memory_core.retrieval.unit_vectors import TOLERANCE, from_halves, unit_halves, unit_rows, unit_vector, widened

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(arrays(np.float32, (3, 5), elements=FINITE))
def test_rows_keep_their_direction_and_get_length_one(rows: NDArray[np.float32]) -> None:
    found = unit_rows(rows)
    for row, unit in zip(rows.astype(np.float64), found.astype(np.float64), strict=True):
        if not row.any():
            assert not unit.any()
            continue
        assert np.linalg.norm(unit) == pytest.approx(1, abs=2 * TOLERANCE)
        largest = np.abs(row).max()
        assert unit * np.linalg.norm(row / largest) == pytest.approx(row / largest, rel=1e-4, abs=3 * TOLERANCE)


def test_rows_of_length_one_are_not_touched() -> None:
    rows = np.eye(4, dtype=np.float32)[:3]
    assert unit_rows(rows) is rows
    halves = [row.astype(np.float16).tobytes() for row in unit_rows(np.array([[3, 1, 2, 7]], np.float32))]
    assert unit_halves(halves, 4) == tuple(halves)
    assert unit_rows(np.empty((0, 4), np.float32)).shape == (0, 4)


@given(st.binary(min_size=8, max_size=8))
def test_any_bytes_of_a_file_are_a_vector_that_wins_nothing_by_its_length(halves: bytes) -> None:
    (row,) = from_halves(halves, 4)
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) <= 1 + 2 * TOLERANCE
    values = np.frombuffer(halves, np.float16)
    if np.isfinite(values).all():
        (same,) = unit_halves([halves], 4)
        assert from_halves(same, 4)[0] == pytest.approx(row, abs=2e-3)
    else:
        with pytest.raises(InvalidInputError, match="not a finite number"):
            unit_halves([halves], 4)


def test_a_vector_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the 4 dimensions of the model"):
        unit_halves([bytes(8), bytes(6)], 4)


def test_the_vector_of_a_caller_has_a_direction() -> None:
    assert unit_vector([3e-300, 4e-300]).tolist() == pytest.approx([0.6, 0.8])
    with pytest.raises(InvalidInputError, match="not all of them zero"):
        unit_vector([0, 0])


def test_every_finite_float16_is_widened_exactly() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    assert (widened(halves.tobytes()).view(np.int32) == halves.astype(np.float32).view(np.int32)).all()
