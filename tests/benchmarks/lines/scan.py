"""The scan of many vectors by itself: as float32 beside one product of numpy, and as int8 beside that as float32.

Vectors are made on the spot, without a store. A product of numpy has to read every number once. The scan as int8 needs
the extra `accel`, and only searches by vectors alone use it.
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
from memory_core.embedding.multilingual import encoder
from memory_core.retrieval import dense

Floats = NDArray[np.float32]
Scan = Callable[[Floats], Floats]
WIDTH = DIMENSIONS + encoder.DIMENSIONS
COUNTS, AT_ONCE, ASKED, ROUNDS = (10_000, 100_000), 10_000, 10, 5
PAUSE = 0.5
"""Seconds after products of numpy, whose threads keep their cores busy for a while waiting for more."""


def units(count: int, numbers: np.random.Generator) -> Floats:
    vectors: Floats = numbers.standard_normal((count, WIDTH), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def milliseconds(call: Scan, asked: Sequence[Floats]) -> float:
    """The median CPU time, of all threads, of one call for each question."""
    seconds: list[float] = []
    for query in asked:
        start = time.process_time()
        call(query)
        seconds.append(time.process_time() - start)
    return 1e3 * median(seconds)


def figure(name: str, beside: str, ours: Scan, other: Scan, rounds: int, asked: Sequence[Floats]) -> Figure:
    of_ours, of_other = [], []
    for _ in range(rounds):
        of_ours.append(milliseconds(ours, asked))
        of_other.append(milliseconds(other, asked))
        time.sleep(PAUSE)
    return relative(name, "ms", of_ours, beside=beside, other=of_other)


def of(count: int, rounds: int) -> list[Figure]:
    numbers = np.random.default_rng(1)
    held = dense.Dense(WIDTH)
    held.reserve(count)
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        held.extend(units(size, numbers).astype(np.float16).astype(np.float32), range(start, start + size))
    vectors, asked = held._vectors.values, list(units(ASKED, numbers))

    def exact(query: Floats) -> Floats:
        return held.cosines(query, count)

    def nearest(query: Floats) -> Floats:
        return held.cosines(query, count, nearest=10)

    def product(query: Floats) -> Floats:
        found: Floats = vectors @ query
        return found

    found = [figure(f"float32, {count:,} vectors, CPU", "a product of numpy", exact, product, rounds, asked)]
    if dense._has_numkong():
        for _ in range(2 + count // (dense.PACKED_AT_ONCE * dense.BLOCK)):  # searches share the work of making blocks
            nearest(asked[0])
        found.append(figure(f"int8, {count:,} vectors, CPU", "float32", nearest, exact, rounds, asked))
    return found


def measure(*, short: bool) -> Measured:
    counts, rounds = ((1_000,), 1) if short else (COUNTS, ROUNDS)
    return Measured([each for count in counts for each in of(count, rounds)])
