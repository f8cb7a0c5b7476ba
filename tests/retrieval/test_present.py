"""The latest of like statements answers a question about the present."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Memory
from memory_core.requests import SearchRequest
from memory_core.retrieval.cosine_scale import Unrelated
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.present import MOST_WORDS, STEP
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import Cosines, rank
from memory_core.retrieval.term_hashes import pack
from memory_core.retrieval.unit_vectors import unit_rows
from memory_core.where.where import Where

HOUR = 3_600_000_000
UNRELATED = Unrelated(0.05, 0.1)
STATEMENTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(("ferry", "pier", "roses")), min_size=1, max_size=4),
        st.sampled_from((None, "ann", "bo")),
        st.sampled_from((0, FROM_USER, FROM_ASSISTANT)),
        st.sampled_from((None, "one")),
        st.sampled_from((3, MOST_WORDS + 1)),
        st.integers(0, 5),
        st.lists(st.integers(0, 3), min_size=4, max_size=4),
    ),
    min_size=1,
    max_size=10,
)
Statements = list[tuple[list[str], str | None, int, str | None, int, int, list[int]]]


def ranked(statements: Statements, asked: str) -> dict[int, tuple[float, float]]:
    """By row, the score and what the exchange added to it."""
    index = OwnerIndex(4)
    vectors = unit_rows(np.array([vector for *_, vector in statements], np.float32) + np.float32(0.1))
    entries = [
        Entry(n, pack(text), flags, words, session, author, hour * HOUR, None, active=True)
        for n, (text, author, flags, session, words, hour, _) in enumerate(statements)
    ]
    index.extend(entries, [(n, vector.astype(np.float16).tobytes()) for n, vector in enumerate(vectors)])
    request = SearchRequest(text=asked, limit=99, mode="hybrid", where=Where(), explain=True, floor=False)
    cosines = Cosines(vectors[:, 0].copy(), UNRELATED)
    found = rank(index, parse(asked), cosines, request, now=0, allowed=None)
    later = [parts["later"].weighted if "later" in parts else 0.0 for parts in found.components or ()]
    return dict(zip(found.rows.tolist(), zip(found.scores.tolist(), later, strict=True), strict=True))


@given(STATEMENTS)
def test_statements_of_one_voice_exchange_scores_and_nothing_else_changes(statements: Statements) -> None:
    now = ranked(statements, "Where is the ferry?")
    then = ranked(statements, "Where was the ferry?")
    moved = {row for row, (_, later) in now.items() if later}
    assert sorted(score for score, _ in now.values()) == pytest.approx(
        sorted(score for score, _ in then.values()), abs=len(now) * STEP + 1e-4
    )
    assert all(abs(now[row][0] - then[row][0] - now[row][1]) < 1e-3 for row in now)
    assert len({(statements[row][1], statements[row][2]) for row in moved}) <= 1
    assert all(statements[row][4] <= MOST_WORDS for row in moved)
    assert all(statements[row][3] is None or statements[row][2] == FROM_USER for row in moved)
    assert all(
        now[one][0] > now[other][0] for one in moved for other in moved if statements[one][5] > statements[other][5]
    )


def test_the_later_of_two_like_statements_comes_first_and_another_voice_corrects_nothing() -> None:
    alike = [2, 1, 0, 0]
    old = (["ferry", "pier"], "ann", 0, None, 3, 0, alike)
    new = (["ferry"], "ann", 0, None, 3, 1, alike)
    others = (["ferry"], "bo", 0, None, 3, 2, alike)
    assert next(iter(ranked([old, new, others], "Which pier is the ferry at?"))) == 1
    assert next(iter(ranked([old, others], "Which pier is the ferry at?"))) == 0
    assert next(iter(ranked([old, new, others], "Which pier was the ferry at?"))) == 0


@pytest.mark.parametrize(
    ("first", "then", "asked"),
    [
        ("I live in Oslo", "I have moved, I live in Bergen now", "Where do I live?"),
        ("The code of my locker is 31", "The code of my locker is 35 now", "What is the code of my locker?"),
    ],
)
async def test_a_correction_in_the_same_conversation_comes_first(
    first: str, then: str, asked: str, tmp_path: Path
) -> None:
    async with Memory(tmp_path / "m.db") as memory:
        ann = memory.bind(user="ann")
        said = [("user", first), ("assistant", "Noted."), ("user", then), ("assistant", "Noted.")]
        await ann.remember(said, session="friday")
        texts = [hit.record.text for hit in await ann.search(asked)]
        assert texts.index(then) < texts.index(first)
