"""Vectors as a ranking compares them: of finite numbers, of the model's dimensions, and of unit length.

The product of two vectors is their cosine only if both are of length 1. An embedder may return vectors of any length,
and a file may contain any numbers; a longer vector would win every search. So whatever becomes a vector passes one of
these functions. A vector of zeros stays as it is: its product with every other one is 0.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.errors import InvalidInputError
from memory_core.retrieval.arrays import Floats
from memory_core.values.checks import check_size, shown
from memory_core.values.limits import MAX_DIMENSIONS

TOLERANCE: Final = 0.01
"""Maximum difference from 1 of a length that is left as it is. Float16 changes lengths by less than a thousandth."""


def unit_vector(given: object) -> Floats:
    """The vector at length 1.

    Raises:
        InvalidInputError: It is not a sequence of finite numbers, or all are zero.
    """
    if isinstance(given, Sized):
        check_size("vector", len(given), MAX_DIMENSIONS, "numbers", "no model makes so many")
    try:
        vector = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InvalidInputError(f"a vector is a sequence of numbers, not {shown(given)}") from cause
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError(f"a vector is a row of finite numbers, not all of them zero, not {shown(given)}")
    units: Floats = scaled(vector[None])[0]
    return units


def is_unit(vector: Floats) -> bool:
    """True if a vector is of about length 1, and thus of finite numbers."""
    return abs(float(vector.dot(vector)) - 1) <= 2 * TOLERANCE


def unit_rows(rows: Floats) -> Floats:
    """The rows at length 1, those of about that length unchanged; the numbers must be finite."""
    with np.errstate(over="ignore"):
        off = np.flatnonzero(~(np.abs(np.einsum("ij,ij->i", rows, rows) - 1) <= 2 * TOLERANCE))
    if len(off):
        rows = rows.copy()
        rows[off] = scaled(rows[off])
    return rows


def unit_halves(vectors: Sequence[bytes], dimensions: int) -> tuple[bytes, ...]:
    """Rows of float16 at length 1, those of about that length unchanged.

    Raises:
        InvalidInputError: One has another number of dimensions, or a number that is not finite.
    """
    if any(len(vector) != 2 * dimensions for vector in vectors):
        raise InvalidInputError(f"a vector has not the {dimensions} dimensions of the model")
    rows = np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), dimensions)
    if not np.isfinite(rows).all():
        raise InvalidInputError("a vector contains something that is not a finite number")
    before = rows.astype(np.float32)
    after = unit_rows(before)
    return tuple(vectors) if after is before else tuple(row.tobytes() for row in after.astype(np.float16))


def from_halves(halves: bytes, dimensions: int) -> Floats:
    """Rows of float16, as a file stores them, at length 1; whatever the bytes are, the numbers are finite."""
    return unit_rows(widened(halves).reshape(-1, dimensions))


def widened(halves: bytes) -> Floats:
    """Convert finite float16 numbers to float32 by moving bits and scaling exponents; three times as fast as numpy."""
    bits = np.frombuffer(halves, "<i2").astype(np.int32)
    bits <<= 13
    bits &= ~0x70000000  # clears the copies of the sign that the shift left
    floats: Floats = bits.view(np.float32)
    floats *= np.float32(2.0**112)
    return floats


def scaled(rows: NDArray[np.floating]) -> Floats:
    """Each row divided by its length; rows of zeros as they are."""
    wide = rows.astype(np.float64)
    wide /= _or_one(np.abs(wide).max(axis=1, keepdims=True))  # so that squares neither underflow nor overflow
    units: Floats = (wide / _or_one(np.linalg.norm(wide, axis=1, keepdims=True))).astype(np.float32)
    return units


def _or_one(divisors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(divisors == 0, 1.0, divisors)
