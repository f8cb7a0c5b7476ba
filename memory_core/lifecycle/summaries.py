"""Summaries without a model: the most central sentences, in order.

LexRank (Erkan and Radev, "LexRank: Graph-based Lexical Centrality as Salience in Text Summarization", JAIR 22, 2004), in
its continuous form: sentences vote for sentences with which they share terms, by the cosine of their tf-idf vectors, and
the stationary distribution of that graph ranks them. Sentences that repeat a chosen one are passed over, as in the
paper's reranker.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from memory_core.retrieval.analysis import analyse

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

SUMMARY_CHARS: Final = 1_200
"""Length of a summary by default: a fifth of an hour's conversation, a few lines of a prompt."""
DAMPING: Final = 0.85
"""Share of the votes in the rank of a sentence, as in the paper; the rest is the same for all."""
MAX_SENTENCES: Final = 1_000
"""Sentences that are compared; of more, the longest, because the comparison takes quadratic time."""
LEAST_TERMS: Final = 3
"""A sentence with fewer terms ("Okay, thanks!") is not chosen."""
REPEATED: Final = 0.5
"""Cosine from which on a sentence repeats another one, as in the paper."""
_ROUNDS: Final = 50

_SENTENCE: Final = re.compile(r"[^.!?\u2026\n\u3002\uff01\uff1f]+[.!?\u2026\u3002\uff01\uff1f]*")


class ExtractiveSummarizer:
    """A `Summarizer` that needs no model: it quotes the most central sentences (LexRank).

    Args:
        max_chars: Most characters of a summary.
    """

    name = "lexrank"

    def __init__(self, max_chars: int = SUMMARY_CHARS) -> None:
        self._max_chars = max_chars

    async def summarize(self, texts: Sequence[str]) -> str:
        """The central sentences of these texts, one a line, in order; the first text, cut, if no sentence says much."""
        chosen = await asyncio.to_thread(central_sentences, texts, self._max_chars)
        return "\n".join(sentence for _, sentence in chosen) or " ".join(texts[:1])[: self._max_chars]


def central_sentences(texts: Sequence[str], max_chars: int) -> list[tuple[int, str]]:
    """The most central sentences of some texts with the position of their text, in order.

    Args:
        texts: The texts, in order; a name in front of a text ("Ann: ...") belongs to its first sentence.
        max_chars: Most characters of all sentences together, each with a line break.
    """
    said = [(place, part) for place, text in enumerate(texts) for part in map(str.strip, _SENTENCE.findall(text))]
    terms = [Counter(analyse(sentence)) for _, sentence in said]
    known = [n for n, each in enumerate(terms) if len(each) >= LEAST_TERMS and len(said[n][1]) < max_chars]
    known = sorted(sorted(known, key=lambda n: -len(terms[n]))[:MAX_SENTENCES])
    if not known:
        return []
    likeness = _likeness([terms[n] for n in known])
    chosen: list[int] = []
    room = max_chars
    for place in _ranked(likeness):
        size = len(said[known[place]][1]) + 1
        if size <= room and all(likeness[place, other] < REPEATED for other in chosen):
            chosen.append(place)
            room -= size
    return [said[known[place]] for place in sorted(chosen)]


def _likeness(terms: Sequence[Counter[str]]) -> Matrix:
    """The cosines of all pairs of sentences, by tf-idf."""
    import numpy as np  # noqa: PLC0415  (only summaries need it)

    holding = Counter(word for each in terms for word in each)
    columns = {word: n for n, word in enumerate(holding)}
    rows = np.zeros((len(terms), len(columns)))
    for row, each in zip(rows, terms, strict=True):
        for word, count in each.items():
            row[columns[word]] = count * math.log(1 + len(terms) / holding[word])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


def _ranked(likeness: Matrix) -> list[int]:
    """The positions of all sentences, the most central first, the earlier among equals."""
    import numpy as np  # noqa: PLC0415

    votes = likeness / likeness.sum(axis=1, keepdims=True)
    ranks = np.full(len(votes), 1 / len(votes))
    for _ in range(_ROUNDS):
        ranks = (1 - DAMPING) / len(votes) + DAMPING * (ranks @ votes)
    return [int(place) for place in np.argsort(-ranks.round(12), kind="stable")]
