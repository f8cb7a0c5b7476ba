"""The contract of rerankers."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from memory_core.supplied import Reranker
from memory_core.testing.embedder import STRANGE_TEXTS, TEXTS


class RerankerContract:
    """Subclass it and define the fixture `reranker`."""

    @pytest.fixture
    def reranker(self) -> Reranker:
        """The reranker under test."""
        raise NotImplementedError("a subclass of the contract has to define the fixture `reranker`")

    @pytest.mark.parametrize("texts", [(), TEXTS[:1], TEXTS, STRANGE_TEXTS], ids=["none", "one", "some", "strange"])
    async def test_every_text_has_a_finite_score(self, reranker: Reranker, texts: Sequence[str]) -> None:
        scores = [float(score) for score in await reranker.rerank("What does Ann drink?", texts)]
        assert len(scores) == len(texts)
        assert all(map(math.isfinite, scores))

    async def test_a_text_is_judged_whatever_stands_beside_it(self, reranker: Reranker) -> None:
        there = [float(score) for score in await reranker.rerank(TEXTS[0], TEXTS)]
        back = [float(score) for score in await reranker.rerank(TEXTS[0], TEXTS[::-1])]
        assert back[::-1] == pytest.approx(there, abs=1e-3)
