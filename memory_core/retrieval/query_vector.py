"""Vectors that a caller brings along."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np
from numpy.typing import NDArray

from memory_core.checks import shown
from memory_core.errors import InvalidInputError
from memory_core.limits import MAX_DIMENSIONS, check_size


def unit_vector(given: object) -> NDArray[np.float32]:
    """The vector at length 1.

    Raises:
        InvalidInputError: It is no row of finite numbers, or zero.
    """
    if isinstance(given, Sized):
        check_size("vector", len(given), MAX_DIMENSIONS, "numbers", "no model makes so many")
    try:
        vector = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InvalidInputError(f"a vector is a sequence of numbers, not {shown(given)}") from cause
    if vector.ndim != 1 or not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError(f"a vector is a row of finite numbers, not all of them zero, not {shown(given)}")
    vector = vector / np.abs(vector).max()  # so that the squares of very small and very large numbers are numbers, too
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit
