"""Choose the passage of a long text that answers the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from memory_core.models import Passage, whole_passage

WHOLE_CHARS: Final = 400
"""A text of at most this many characters is its own passage, however it was split: it is short enough to show in full,
and no chunk has to be read."""


def best_passage(
    text: str,
    spans: Sequence[tuple[int, int]],
    needles: Sequence[str],
    cosines: NDArray[np.float32] | None,
    *,
    reach: int = 0,
) -> Passage:
    """The chunk with the highest sum of its cosine and the share of query terms in it; the first of equals.

    Args:
        spans: The chunks of the text.
        needles: Analysed terms of the query. They are stems, so a word that begins with one counts; analysing the
            chunks as well would take longer than the search.
        cosines: Cosine of each chunk with the query, NaN where a vector is pending; `None` if there are no vectors.
        reach: Characters behind the end of a chunk that are searched too, for words that begin in it.
    """
    if len(spans) < 2 or len(text) <= WHOLE_CHARS:
        return whole_passage(text)
    looked_for = [needle[:-1] if needle.endswith("i") and len(needle) > 2 else needle for needle in needles]  # y -> i
    scores = np.zeros(len(spans)) if cosines is None else np.nan_to_num(cosines).astype(np.float64)
    for n, (start, stop) in enumerate(spans):
        piece = text[start : stop + reach].casefold()
        scores[n] += sum(needle in piece for needle in looked_for) / max(len(looked_for), 1)
    start, stop = spans[int(scores.argmax())]
    return Passage(start, stop, text[start:stop])
