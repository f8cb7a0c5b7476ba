"""Searches that find a memory only if it matches by itself, whatever was said beside it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from memory_core import BoundMemory, Hit, SharedMemory, Where
from memory_core.adapting import Mode

KEYWORDS: Final = 3
"""A query of at most so many words is a list of keywords. No question of the corpora in `tests/corpora` is so short."""
SHARE_OF_BEST: Final = 0.5
"""If a memory has all keywords, one with none of them needs this share of the best one's evidence."""
LEAST_MEANING: Final = 1.0
"""Least evidence of the best memory if none has a word of the query, in spreads of unrelated texts. Below it the first
ten results of the development corpora have no more of the evidence than ten records drawn at random."""
_OWN: Final = ("bm25", "cosine", "speaker", "date")
"""The parts of a score that depend on the text itself, and on its author and time."""
_EVERYTHING: Final = Where()


class Alone:
    """A handle whose searches find only what matches by itself.

    Whoever asks with keywords that a memory has, as models and ADK's own services do, means these words: other
    memories are found by their meaning only if that is about as much evidence.
    """

    def __init__(self, handle: BoundMemory | SharedMemory) -> None:
        self._handle = handle
        self.memory = handle.memory
        self.list = handle.list

    async def search(
        self,
        query: str,
        *,
        limit: int = 10,
        where: Where = _EVERYTHING,
        mode: Mode = "hybrid",
        floor: bool = True,
        explain: bool = False,  # noqa: ARG002  (the parts of the scores are read anyway)
    ) -> list[Hit]:
        """`search` without neighbours."""
        search = self._handle.search
        hits = await search(query, limit=limit, where=where, mode=mode, floor=floor, context=False, explain=True)
        if mode != "hybrid" or not floor or not hits:
            return hits
        best = max(map(_evidence, hits))
        if not any(map(_has_a_word, hits)):
            return hits if best >= LEAST_MEANING else []
        if len(re.findall(r"\w+", query)) > KEYWORDS or not await search(query, limit=1, where=where, every_word=True):
            return hits
        matching = [hit for hit in hits if _has_a_word(hit) or _evidence(hit) >= SHARE_OF_BEST * best]
        return sorted((replace(hit, score=_evidence(hit)) for hit in matching), key=lambda hit: -hit.score)


class AloneTogether(Alone):
    """`Alone` for a handle that reads several owners."""

    def __init__(self, handle: SharedMemory) -> None:
        super().__init__(handle)
        self.label_of = handle.label_of


def alone(handle: BoundMemory | SharedMemory) -> Alone:
    """The same memories, found only if they match by themselves."""
    return AloneTogether(handle) if isinstance(handle, SharedMemory) else Alone(handle)


def _evidence(hit: Hit) -> float:
    parts = hit.components or {}
    return sum(parts[name].weighted for name in _OWN if name in parts)


def _has_a_word(hit: Hit) -> bool:
    return "bm25" in (hit.components or {})
