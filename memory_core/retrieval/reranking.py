"""A second opinion on the best hits, by a model of the application, within a deadline.

The search decides what is a hit; a `Reranker` decides the order of the best of them. It may raise anything, return
anything, or never return: the hits then keep the order of the search.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory_core.concurrency.foreign import answer_within
from memory_core.errors import InvalidInputError, reason_for_log
from memory_core.models import Component, Hit
from memory_core.requests import SearchRequest
from memory_core.supplied import Reranker

logger = logging.getLogger(__name__)

RERANKED: Final = 50
"""The number of the best hits that are reranked: more than are shown as a rule, and few enough for a cross-encoder."""
DEADLINE_SECONDS: Final = 2.0
"""The time for which a search waits for the scores."""


class Reranking:
    """A reranker with its deadline."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._has_failed = False

    def widened(self, request: SearchRequest) -> SearchRequest:
        """The request for the hits to rerank."""
        return request if request.limit >= RERANKED else replace(request, limit=RERANKED)

    async def reranked(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """The hits in the order of the reranker, or in their own if it gives none; of equals the earlier first.

        Each hit gets the score of its new place, so scores still fall and mean what they meant. Await it on the core
        loop.
        """
        first = hits[:RERANKED]
        scores = await self._scores(query, [hit.passage.text if hit.passage else hit.record.text for hit in first])
        if scores is None:
            return list(hits)
        order = sorted(range(len(first)), key=lambda place: -scores[place])
        moved = [_at(first[old], hits[new].score, scores[old]) for new, old in enumerate(order)]
        return [*moved, *hits[RERANKED:]]

    async def _scores(self, query: str, texts: Sequence[str]) -> list[float] | None:
        if len(texts) < 2:
            return None
        try:
            scores = await answer_within(DEADLINE_SECONDS, lambda: self._reranker.rerank(query, texts))
            checked = _checked(scores, len(texts))
        except (GeneratorExit, asyncio.CancelledError):  # of the caller
            raise
        except BaseException as error:  # noqa: BLE001  (it may raise anything, and may succeed next time)
            self._note(reason_for_log(error))
            return None
        self._has_failed = False
        return checked

    def _note(self, reason: str) -> None:
        """Log the first failure of several; a reranker that is down would otherwise fill the log, one line a search."""
        if not self._has_failed:
            self._has_failed = True
            name = type(self._reranker).__name__
            logger.warning("%s cannot rerank, so hits keep the order of the search: %s", name, reason)


def _checked(scores: Sequence[float], count: int) -> list[float]:
    """Scores, if they are what a reranker has to return."""
    checked = [float(score) for score in scores]
    if len(checked) != count or not all(map(math.isfinite, checked)):
        raise InvalidInputError(f"{len(checked)} scores for {count} texts, or some not finite")
    return checked


def _at(hit: Hit, score: float, reranker: float) -> Hit:
    """The hit at the place of another score."""
    if hit.components is None:
        return replace(hit, score=score)
    moved = {**hit.components, "reranker": Component(reranker, score - hit.score)}
    return replace(hit, score=score, components=moved)
