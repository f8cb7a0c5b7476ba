"""The parts that the benchmarks share: texts and vectors that look like memories, and medians of interleaved
repetitions.

Texts are 33 words drawn from a zipf vocabulary; vectors are 384 numbers around 1,000 centres. Neither needs a model, so
what is measured is the store.
"""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memory_core import Draft, Fingerprint

DIMENSIONS = 384
_SYLLABLES = [a + b for a in "bcdfghklnprstvwz" for b in ("a", "e", "i", "o", "u", "ar", "en", "il")]
_VOCABULARY = [a + b + c for a, b, c in itertools.islice(itertools.product(_SYLLABLES, repeat=3), 7, 2_000_007, 100)]
_WEIGHTS = list(itertools.accumulate(1 / (rank + 1) for rank in range(20_000)))


class GivenVectors:
    """An embedder that costs next to nothing: a text's vector follows from its hash."""

    def __init__(self, dimensions: int = DIMENSIONS) -> None:
        self.fingerprint = Fingerprint("given", "1", dimensions)
        self._centres = np.random.default_rng(1).standard_normal((1_000, dimensions)).astype(np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self.vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.vector(text)

    async def close(self) -> None:
        """Nothing to let go of."""

    def vector(self, text: str) -> NDArray[np.float32]:
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        numbers = np.random.default_rng(seed)
        vector = self._centres[seed % 1_000] + 0.8 * numbers.standard_normal(self.fingerprint.dimensions, np.float32)
        unit: NDArray[np.float32] = vector / np.linalg.norm(vector)
        return unit


class RememberedVectors(GivenVectors):
    """The same vectors, each computed once."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, NDArray[np.float32]] = {}

    def vector(self, text: str) -> NDArray[np.float32]:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = super().vector(text)
        return known


class KnownVectors(GivenVectors):
    """The same vectors, computed beforehand: looking one up costs nothing that matters."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self._known = {text: GivenVectors.vector(self, text) for text in texts}

    def vector(self, text: str) -> NDArray[np.float32]:
        return self._known[text]

    def stored(self, text: str) -> bytes:
        """As a row holds it."""
        return self._known[text].astype(np.float16).tobytes()


def drafts(count: int, seed: int) -> list[Draft]:
    """Turns of conversations of 40, between three people."""
    dice = random.Random(seed)
    return [
        Draft(
            " ".join(dice.choices(_VOCABULARY, cum_weights=_WEIGHTS, k=33)),
            author=f"person{number % 3}",
            session=f"session{number // 40}",
            kind="message",
        )
        for number in range(count)
    ]


def questions(count: int, seed: int) -> list[str]:
    """Eight words each, with the frequencies of the texts."""
    dice = random.Random(seed)
    return [" ".join(dice.choices(_VOCABULARY, cum_weights=_WEIGHTS, k=8)) for _ in range(count)]


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds."""
    ordered = sorted(seconds)
    return 1e3 * statistics.median(ordered), 1e3 * ordered[int(0.95 * len(ordered))]


async def time_each(call: Callable[[str], Awaitable[object]], asked: Sequence[str]) -> list[float]:
    """The time that each call took, in seconds."""
    seconds: list[float] = []
    for question in asked:
        start = time.perf_counter()
        await call(question)
        seconds.append(time.perf_counter() - start)
    return seconds
