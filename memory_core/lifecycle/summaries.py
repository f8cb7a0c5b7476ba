"""Summaries without a model: the sentences that together say most, in order.

A sentence covers its terms, and sentences are chosen one by one, each the one with the most new terms for its length:
the greedy algorithm for budgeted maximum coverage (Khuller, Moss and Naor 1999), which Takamura and Okumura use for
summaries ("Text Summarization Model Based on Maximum Coverage Problem and its Variant", EACL 2009).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from memory_core.retrieval.analysis import analyse
from memory_core.values.checks import check_count
from memory_core.values.limits import MAX_TEXT_CHARS

SUMMARY_CHARS: Final = 1_200
"""Length of a summary by default: some lines of a prompt."""
LEAST_TERMS: Final = 3
"""A sentence with fewer terms ("Okay, thanks!") is not chosen."""

_SENTENCE: Final = re.compile(r"[^\n]+?(?:(?<![.!?\u2026])[.!?\u2026]+(?=\s|$)|[\u3002\uff01\uff1f]+|(?=\n)|$)")
"""Looks behind itself, or a text of a million full stops would take hours."""


class ExtractiveSummarizer:
    """A `Summarizer` that needs no model: it quotes sentences.

    Args:
        max_chars: Most characters of a summary, from 1 to `MAX_TEXT_CHARS`.

    Raises:
        InvalidInputError: `max_chars` is out of range.
    """

    def __init__(self, max_chars: int = SUMMARY_CHARS) -> None:
        self._max_chars = check_count("max_chars", max_chars, 1, MAX_TEXT_CHARS)

    async def summarize(self, texts: Sequence[str]) -> str:
        """Sentences of these texts, one a line, in order; the first text, cut, if no sentence says much."""
        chosen = await asyncio.to_thread(telling_sentences, texts, self._max_chars)
        return "\n".join(chosen) or " ".join(texts[:1])[: self._max_chars]


def telling_sentences(texts: Sequence[str], max_chars: int) -> list[str]:
    """The sentences of some texts that together have the most different terms, in order.

    Args:
        texts: The texts, in order; a name in front of a text ("Ann: ...") belongs to its first sentence.
        max_chars: Most characters of all sentences together, each with a line break.
    """
    said = [part.strip() for text in texts for part in _SENTENCE.findall(text)]
    terms = [frozenset(analyse(sentence)) for sentence in said]
    left = [n for n, each in enumerate(terms) if len(each) >= LEAST_TERMS]
    covered: set[str] = set()
    chosen: list[int] = []
    room = max_chars
    while left := [n for n in left if len(said[n]) < room and not terms[n] <= covered]:
        best = max(left, key=lambda n: (len(terms[n] - covered) / len(said[n]), -n))
        chosen.append(best)
        covered |= terms[best]
        room -= len(said[best]) + 1
    return [said[n] for n in sorted(chosen)]
