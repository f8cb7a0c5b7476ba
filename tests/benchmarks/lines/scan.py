"""The scan of many vectors by itself, as float32 and as int8, beside one float32 product of numpy.

Vectors are made on the spot, without a store. A product of numpy has to read every number once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
from numpy.typing import NDArray

from common import DIMENSIONS
from lines.figure import Figure, relative
from lines.result import Measured
from memory_core.retrieval import dense

Floats = NDArray[np.float32]
COUNT, AT_ONCE, ASKED, ROUNDS = 100_000, 20_000, 10, 5
PAUSE = 0.5
"""Seconds after products of numpy, whose threads keep their cores busy for a while waiting for more."""


def units(count: int, numbers: np.random.Generator) -> Floats:
    vectors: Floats = numbers.standard_normal((count, DIMENSIONS), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def milliseconds(call: Callable[[Floats], Floats], asked: Sequence[Floats]) -> float:
    """The median of one call for each question."""
    seconds: list[float] = []
    for query in asked:
        start = time.perf_counter()
        call(query)
        seconds.append(time.perf_counter() - start)
    return 1e3 * median(seconds)


def figure(name: str, held: dense.Dense, count: int, rounds: int, asked: Sequence[Floats]) -> Figure:
    vectors = held._vectors.values
    ours, product = [], []

    def scan(query: Floats) -> Floats:
        return held.cosines(query, count, nearest=10)

    for _ in range(2 + count // (dense.PACKED_AT_ONCE * dense.BLOCK)):  # searches share the work of making blocks
        scan(asked[0])
    for _ in range(rounds):
        ours.append(milliseconds(scan, asked))
        product.append(milliseconds(lambda query: vectors @ query, asked))
        time.sleep(PAUSE)
    return relative(f"{name}, {count:,} vectors", "ms", ours, beside="a product of numpy", other=product)


def measure(*, short: bool) -> Measured:
    count, rounds = (1_000, 1) if short else (COUNT, ROUNDS)
    numbers = np.random.default_rng(1)
    held = dense.Dense(DIMENSIONS)
    held.reserve(count)
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        held.extend(units(size, numbers).astype(np.float16).astype(np.float32), range(start, start + size))
    kind = "int8" if dense._has_numkong() else "float32"
    return Measured([figure(kind, held, count, rounds, list(units(ASKED, numbers)))])
