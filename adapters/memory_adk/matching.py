"""Searches that find a memory only if it matches by itself, whatever was said beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from memory_core import BoundMemory, Hit, Where
from memory_core.adapting import Mode

LEAST_SCORE: Final = 0.1
"""Share of the best hit's score that a result needs by default. Up to this share, no question of the development
corpora (`tests/benchmarks/breadth.py`) loses evidence among the first ten results."""
KEYWORDS: Final = 3
"""A query of at most so many words without a question mark is a list of keywords."""
SHARE_OF_BEST: Final = 0.5
"""If a memory has all keywords, one with none of them needs this share of the best one's evidence."""
LEAST_MEANING: Final = 1.0
"""Least evidence of the best memory if none has a keyword, in spreads of unrelated texts: the embedder does not know
the keyword either."""
_WORD: Final = re.compile(r"[\u3400-\u9fff]{1,2}|[^\W\u3400-\u9fff]+")
"""A word; of Chinese characters, between which there are no spaces, two."""
_OWN: Final = ("bm25", "cosine", "speaker", "date")
"""The parts of a score that depend on the text itself, and on its author and time."""
_EVERYTHING: Final = Where()


class Alone:
    """A handle whose searches find only what matches by itself.

    A query of a few keywords, as models write them, means these words: memories are ranked by what they say
    themselves, and if one has all keywords, a memory with none of them is found only if its meaning is nearly as near.
    """

    def __init__(self, handle: BoundMemory) -> None:
        self._handle = handle
        self.memory = handle.memory
        self.spaces = handle.spaces
        self.label_of = handle.label_of
        self.list = handle.list
        self.profile = handle.profile

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = _EVERYTHING,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,  # noqa: ARG002  (the parts of the scores are read anyway)
        apart: bool = False,
    ) -> list[Hit]:
        """`search` without neighbours."""
        search = partial(self._handle.search, where=where, apart=apart)
        hits = await search(query, limit=limit, mode=mode, floor=floor, context=False, explain=True)
        if mode != "hybrid" or not floor or not hits or not is_keywords(query):
            return hits
        ranked = _ranked(hits)
        literal = [hit for hit in ranked if _has_a_word(hit)]
        if not literal:
            return ranked if ranked[0].score >= LEAST_MEANING else []
        if len(literal) == len(ranked) or not await search(query, limit=1, every_word=True):
            return ranked
        return [hit for hit in ranked if _has_a_word(hit) or hit.score >= SHARE_OF_BEST * ranked[0].score]


def is_keywords(query: str) -> bool:
    """Whether a query is a list of keywords and no question."""
    return len(_WORD.findall(query)) <= KEYWORDS and not {"?", "\uff1f", "\u061f"}.intersection(query)


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    """Hits by their own evidence, equal ones by time; one that has a keyword gets the least score of a result."""
    best = max(map(_evidence, hits))
    in_order = sorted(hits, key=lambda hit: (-_evidence(hit), hit.record.occurred_at))
    return [replace(hit, score=max(_evidence(hit), LEAST_SCORE * best * _has_a_word(hit))) for hit in in_order]


def _evidence(hit: Hit) -> float:
    parts = hit.components or {}
    return sum(parts[name].weighted for name in _OWN if name in parts)


def _has_a_word(hit: Hit) -> bool:
    return "bm25" in (hit.components or {})
