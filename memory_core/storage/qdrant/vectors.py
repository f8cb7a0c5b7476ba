"""The vectors of a point: the rows of its text, and its terms as a sparse vector."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from memory_core.retrieval.bm25 import K1, B
from memory_core.storage.qdrant.client import models

WORDS: Final = "words"
"""The sparse vector: BM25 weights of the analysed terms, without the IDF, which the server adds at query time."""
AVERAGE_TERMS: Final = 20
"""Length by which the stored BM25 weights are normalised: the server uses them only to select candidates."""
MAX_FLOATS: Final = 1_000_000
"""Maximum number of numbers in the vector of one point. Pieces of a text beyond it are found by words only."""


def sparse(terms: str) -> models.SparseVector:
    """BM25 weights by hashed term; terms with the same hash share a dimension, which affects candidates, not ranks."""
    counts = Counter(zlib.crc32(term.encode()) for term in terms.split())
    norm = K1 * (1 - B + B * sum(counts.values()) / AVERAGE_TERMS)
    indices = sorted(counts)
    weights = [round((K1 + 1) * counts[index] / (counts[index] + norm), 4) for index in indices]
    return models.SparseVector(indices=indices, values=weights)


def sparse_query(terms: Sequence[str]) -> models.SparseVector:
    """The same dimensions for the distinct terms of a query."""
    indices = sorted({zlib.crc32(term.encode()) for term in terms})
    return models.SparseVector(indices=indices, values=[1.0] * len(indices))


def dense(vectors: Sequence[bytes]) -> list[list[float]]:
    """Rows of numbers, as many as fit into one point."""
    rows = np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1).astype(np.float64)
    kept: list[list[float]] = np.round(rows[: max(MAX_FLOATS // rows.shape[1], 1)], 7).tolist()
    return kept


def head_of(vector: str) -> str:
    """The name of the vector of the first piece alone. Only texts of several pieces have it, because the ranking
    compares their first piece as it is and the others with a handicap (`retrieval/dense.py`)."""
    return f"{vector}-first"


def named_vectors(vector: str, rows: Sequence[bytes]) -> dict[str, Any]:
    """The vectors of a text of one or more pieces, by name."""
    numbers = dense(rows)
    return {vector: numbers, **({head_of(vector): numbers[0]} if len(rows) > 1 else {})}


def rows_of(vectors: Any, name: str | None) -> tuple[bytes, ...]:
    """The float16 rows of one vector of a point, as the client returns them; empty if there is none."""
    found = cast("dict[str | None, Any]", vectors).get(name) if isinstance(vectors, dict) else None
    return tuple(np.asarray(row, np.float16).tobytes() for row in found or ())
