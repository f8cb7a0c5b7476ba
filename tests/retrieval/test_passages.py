"""The piece of a long text that is shown: the one with the most of what was looked for."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory_core.models import whole_passage
from memory_core.retrieval.passages import WHOLE_CHARS, best_passage

WORDS = st.sampled_from(["Tea", "harbour", "sonar", "boat"])
PIECES = st.lists(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), min_size=2, max_size=6)
COSINES = st.sampled_from([0.0, 0.25, 0.5, math.nan])
NEEDLES = st.lists(st.sampled_from(["tea", "harbour", "sonar"]), max_size=3, unique=True)


@given(PIECES, NEEDLES, st.data())
def test_the_best_piece_has_the_best_cosine_and_share_of_the_words(
    pieces: list[str], needles: list[str], data: st.DataObject
) -> None:
    text = f"{'. '.join(pieces)}. {'-' * WHOLE_CHARS}"
    ends = [0, *(sum(len(piece) + 2 for piece in pieces[: n + 1]) for n in range(len(pieces)))]
    spans = list(pairwise(ends))
    drawn = data.draw(st.none() | st.lists(COSINES, min_size=len(spans), max_size=len(spans)))
    cosines = None if drawn is None else np.array(drawn, np.float32)

    def worth(n: int) -> float:
        near = 0.0 if drawn is None or math.isnan(drawn[n]) else drawn[n]
        return near + sum(needle in pieces[n].lower() for needle in needles) / max(len(needles), 1)

    found = best_passage(text, spans, needles, cosines)
    shown = spans.index((found.start, found.stop))
    assert found.text == text[found.start : found.stop]
    assert all(worth(shown) > worth(n) - 1e-9 for n in range(len(spans)))
    assert all(worth(shown) > worth(n) + 1e-9 for n in range(shown))


@given(st.text(max_size=WHOLE_CHARS), NEEDLES)
def test_a_short_text_is_its_own_passage(text: str, needles: list[str]) -> None:
    middle = len(text) // 2
    assert best_passage(text, [(0, middle), (middle, len(text))], needles, None) == whole_passage(text)


def test_a_word_that_runs_into_the_next_piece_is_seen_within_reach() -> None:
    text = "x" * WHOLE_CHARS + "harbour"
    spans = [(0, 3), (3, WHOLE_CHARS + 4), (WHOLE_CHARS + 4, len(text))]
    assert best_passage(text, spans, ["harbour"], None).start == 0
    assert best_passage(text, spans, ["harbour"], None, reach=3).start == 3
