"""The scan of many vectors by itself, as float32 and as int8, beside one float32 product of numpy.

    python tests/benchmarks/scan.py [COUNT]

Vectors are made on the spot, without a store: a million of them take 1.5 GB as float32 and 0.4 GB as int8.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from common import DIMENSIONS
from memory_core.retrieval import dense

Floats = NDArray[np.float32]
AT_ONCE, ASKED, ROUNDS = 20_000, 10, 3
PAUSE = 0.5
"""Seconds after products of numpy, whose threads keep their cores busy for a while waiting for more."""


def units(count: int, numbers: np.random.Generator, centres: Floats) -> Floats:
    """Vectors around centres."""
    noise = 0.8 * numbers.standard_normal((count, DIMENSIONS), np.float32)
    vectors: Floats = centres[numbers.integers(0, len(centres), count)] + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def milliseconds(call: Callable[[Floats], Floats], asked: Floats) -> float:
    """The median of some rounds."""
    seconds: list[float] = []
    for query in [*asked] * ROUNDS:
        start = time.perf_counter()
        call(query)
        seconds.append(time.perf_counter() - start)
    time.sleep(PAUSE)
    return 1e3 * statistics.median(seconds)


def main(count: int) -> None:
    numbers = np.random.default_rng(1)
    centres = numbers.standard_normal((1_000, DIMENSIONS), np.float32)
    held = dense.Dense(DIMENSIONS)
    held.reserve(count)
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        held.extend(units(size, numbers, centres).astype(np.float16).astype(np.float32), range(start, start + size))
    vectors, asked = held._vectors.values, units(ASKED, numbers, centres)

    def scan(query: Floats) -> Floats:
        return held.cosines(query, count, nearest=10)

    product = milliseconds(lambda query: vectors @ query, asked)
    with patch.object(dense, "_has_numkong", return_value=False):
        took = milliseconds(scan, asked)
    print(f"{count} vectors, float32: {took:.1f} ms, one product {product:.1f} ms, ratio {took / product:.2f}")
    if dense._has_numkong():
        for _ in range(2 + count // (dense.PACKED_AT_ONCE * dense.BLOCK)):  # searches share the work of making blocks
            scan(asked[0])
        took = milliseconds(scan, asked)
        best = [set(np.argsort(-(vectors @ query))[:10].tolist()) for query in asked]
        shared = sum(
            len(rows & set(np.argsort(-scan(query))[:10].tolist())) for rows, query in zip(best, asked, strict=True)
        )
        print(f"{count} vectors, int8: {took:.1f} ms, ratio {took / product:.2f}, recall@10 {shared / 10 / ASKED:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
