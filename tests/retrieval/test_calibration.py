"""The floor under a search on the corpora of this project: it keeps what answers, and as little else as that allows."""

from __future__ import annotations

import asyncio

import pytest

from memory_core.retrieval.floor import SLACK
from tests.corpora.calibration import Point, curve
from tests.corpora.loading import CORPORA

KEPT = 0.995
"""Least share of the answerable questions that keep their evidence, on every corpus."""
SILENT = {
    "facts": 0.06,
    "assistant_chats": 0.04,
    "people_talking": 0.03,
    "documents": 0.06,
    "languages": 0.0,
    "changing": 0.04,
    "agent_logs": 0.08,
}
"""Least share of the unanswerable questions that find nothing; `docs/measured.md` has the whole curves."""
STRICTER = SLACK - 1
LOSING = "documents"
"""The corpus that loses most by a stricter floor."""

pytestmark = pytest.mark.slow

Curves = dict[str, dict[float, Point]]


@pytest.fixture(scope="module")
def curves() -> Curves:
    stricter = {LOSING: (SLACK, STRICTER)}
    return {corpus: asyncio.run(curve(corpus, stricter.get(corpus, (SLACK,)))) for corpus in CORPORA}


def test_answerable_questions_keep_their_evidence(curves: Curves) -> None:
    kept = {corpus: points[SLACK].kept for corpus, points in curves.items()}
    assert not {corpus: share for corpus, share in kept.items() if share < KEPT}


def test_unanswerable_questions_find_nothing(curves: Curves) -> None:
    silent = {corpus: points[SLACK].silent for corpus, points in curves.items()}
    assert not {corpus: share for corpus, share in silent.items() if share < SILENT[corpus]}


def test_a_stricter_floor_would_silence_more_and_lose_evidence(curves: Curves) -> None:
    points = curves[LOSING]
    assert points[STRICTER].silent >= points[SLACK].silent
    assert points[STRICTER].kept < KEPT
