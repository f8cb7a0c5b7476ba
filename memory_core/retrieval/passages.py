"""Which part of a long text is the one that answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Passage

WHOLE_CHARS: Final = 400
"""A text of no more than this is its own passage, however it was cut: a glance takes it in, and nothing has to be read
for it."""


def whole(text: str) -> Passage:
    """All of a text."""
    return Passage(0, len(text), text)


def best_passage(
    text: str,
    spans: Sequence[tuple[int, int]],
    needles: Sequence[str],
    cosines: NDArray[np.float32] | None,
    *,
    reach: int = 0,
) -> Passage:
    """The piece with the best sum of its cosine and its share of what was looked for; of equals the first.

    Args:
        spans: The pieces of the text.
        needles: Analysed terms of the query. They are stems, so that a word that begins with one counts; to analyse the
            pieces as well would take longer than the search.
        cosines: Of each piece with the query, NaN where a vector is owed; `None` if nothing was compared.
        reach: How far behind its end a piece is looked at, for what begins in it.
    """
    if len(spans) < 2 or len(text) <= WHOLE_CHARS:
        return whole(text)
    looked_for = [needle[:-1] if needle.endswith("i") and len(needle) > 2 else needle for needle in needles]  # y -> i
    scores = np.zeros(len(spans)) if cosines is None else np.nan_to_num(cosines).astype(np.float64)
    for n, (start, stop) in enumerate(spans):
        piece = text[start : stop + reach].casefold()
        scores[n] += sum(needle in piece for needle in looked_for) / max(len(looked_for), 1)
    start, stop = spans[int(scores.argmax())]
    return Passage(start, stop, text[start:stop])
