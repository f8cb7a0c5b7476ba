"""Find the passage of each hit: the chunk of a long text that matches best."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Passage
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage, whole
from memory_core.storage.sqlite.damage import explaining

_PIECES = (
    "SELECT record, start, stop, vector FROM chunk WHERE record IN "
    "(SELECT record FROM chunk WHERE n = 1 AND record IN (SELECT value FROM json_each(?))) ORDER BY record, n"
)


def passages(
    db: sqlite3.Connection,
    texts: Mapping[int, str],
    needles: Sequence[str],
    vector: NDArray[np.float32] | None,
    *,
    reach: int = 0,
) -> dict[int, Passage]:
    """The passage of each text, by the key of its record; see `best_passage`."""
    found = {key: whole(text) for key, text in texts.items()}
    long = [key for key, text in texts.items() if len(text) > WHOLE_CHARS]
    if long:
        rows = db.execute(_PIECES, (f"[{','.join(map(str, long))}]",))
        for key, some in groupby(rows, itemgetter(0)):
            with explaining("the pieces of a text"):
                found[key] = _best(texts[key], list(some), needles, vector, reach)
    return found


def _best(
    text: str, pieces: Sequence[Sequence[Any]], needles: Sequence[str], vector: NDArray[np.float32] | None, reach: int
) -> Passage:
    spans = [(start, stop) for _, start, stop, _ in pieces]
    cosines = None if vector is None else np.array([_cosine(piece[3], vector) for piece in pieces], np.float32)
    return best_passage(text, spans, needles, cosines, reach=reach)


def _cosine(blob: bytes | None, vector: NDArray[np.float32]) -> float:
    return float("nan") if blob is None else float(np.frombuffer(blob, np.float16).astype(np.float32) @ vector)
