"""The rules of conversations, which leave other records alone."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, Memory
from memory_core.requests import SearchRequest
from memory_core.retrieval import ranking
from memory_core.retrieval.cosine_scale import Unrelated
from memory_core.retrieval.dense import chance
from memory_core.retrieval.features import FROM_ASSISTANT, FROM_USER
from memory_core.retrieval.floor import FEWEST
from memory_core.retrieval.owner_index import Entry, OwnerIndex
from memory_core.retrieval.question import parse
from memory_core.retrieval.ranking import HINT, LENGTH, ROLE, Cosines, rank
from memory_core.retrieval.term_hashes import pack
from memory_core.settings import DEFAULT_EMBEDDER
from memory_core.where.where import Where

FACTS = [
    f"{who} {does} {what}"
    for who in ("The gardener", "Our neighbour", "The captain")
    for does in ("prunes", "photographs", "sketches", "buys", "sells")
    for what in ("roses in May", "old boats", "a lighthouse", "paper maps", "clocks?")
]
NO_CONTEXT: dict[str, Any] = {"LENT": 0.0, "SESSION": 0.0, "LENGTH": 0.0}


@pytest.mark.parametrize("with_vectors", [True, False])
async def test_facts_rank_the_same_without_the_rules_of_conversations(*, with_vectors: bool) -> None:
    async with Memory(":memory:", embedder=DEFAULT_EMBEDDER if with_vectors else None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many([Draft(fact, kind="fact", session="notes") for fact in FACTS])
        for query in ("Who photographs boats?", "roses", "what does the captain sell"):
            ranked = [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]
            with mock.patch.multiple(ranking, **NO_CONTEXT):
                assert ranked == [(hit.record.text, hit.score) for hit in await handle.search(query, limit=20)]


@pytest.mark.parametrize("with_vectors", [True, False])
async def test_a_record_is_a_turn_because_it_was_said_not_because_somebody_stated_it(*, with_vectors: bool) -> None:
    async with Memory(":memory:", embedder=DEFAULT_EMBEDDER if with_vectors else None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for session, wish in (
            ("fact", {"kind": "fact", "role": "user"}),
            ("note", {"role": "assistant"}),
            ("said", {"kind": "message"}),
        ):
            texts = ("Where does the ferry land?", "At the old pier.")
            await handle.add_many([Draft(text, session=session, **wish) for text in texts])  # type: ignore[arg-type]
        hits = await handle.search("Where does the ferry land?", explain=True, floor=False)
    lent = {hit.record.session for hit in hits if "neighbor" in (hit.components or {})}
    assert lent == {"said"}


async def test_the_less_a_turn_says_the_more_it_takes_over() -> None:
    answers = ["At the old pier.", "At the old pier. " + "I went on about this and that. " * 12, "No. " * 250]
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for session, answer in enumerate(answers):
            await handle.add_many(
                [
                    Draft("Where does the ferry land?", session=str(session), role="user", kind="message"),
                    Draft(answer, session=str(session), role="assistant", kind="message"),
                ]
            )
        hits = await handle.search("ferry land", explain=True, floor=False)
    taken = {hit.record.text: (hit.components or {}).get("neighbor") for hit in hits}
    short, longer, longest = (taken[answer] for answer in answers)
    assert short is not None
    assert longer is not None
    assert short.weighted > longer.weighted > 0
    assert longest is None


@pytest.mark.parametrize(("question", "is_asked_of_the_user"), [("where do I land", True), ("ferry land", False)])
async def test_turns_of_the_other_role_lend_only_what_is_beyond_the_weight_of_the_role(
    question: str, *, is_asked_of_the_user: bool
) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for answering in ("assistant", "user"):
            turns = (
                Draft("Oh.", session=answering, author="Ann", role="user", kind="message"),
                Draft("Ferries land.", session=answering, author="Bo", role=answering, kind="message"),
            )
            await handle.add_many(turns)
        hits = await handle.search(question, explain=True, floor=False)
    taken = {
        hit.record.session: (hit.components or {})["neighbor"].weighted for hit in hits if hit.record.text == "Oh."
    }
    unsaid = 1 - 1 / 200
    beyond = ranking.ROLE * ranking.LENT * unsaid if is_asked_of_the_user else 0.0
    assert taken["assistant"] == pytest.approx(taken["user"] - beyond, abs=1e-5)
    assert taken["user"] > ranking.ROLE * ranking.LENT


async def test_turns_of_one_author_lend_each_other_nothing() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        for second in ("Eve", "Bo", None):
            turns = (("Eve", "Where does the ferry land?"), (second, "At the old pier."))
            await handle.add_many([Draft(text, author=who, session=str(second), kind="message") for who, text in turns])
        hits = await handle.search("Where does the ferry land?", explain=True, floor=False)
    lent = {hit.record.session for hit in hits if "neighbor" in (hit.components or {})}
    assert lent == {"Bo", "None"}


async def test_a_fact_is_not_buried_under_what_the_user_said() -> None:
    async with Memory(":memory:") as memory:
        handle = memory.bind(app="demo", user="ann")
        said = (
            "my tooth is fine again, I only needed some sleep",
            "I read about bees and now I want a hive on my roof",
        )
        await handle.add_many(
            [
                Draft("Employer since May: Harbour Freight Ltd", kind="fact"),
                *(Draft(text, role="user", session=str(n), kind="message") for n, text in enumerate(said)),
                Draft("Noted. Tell me more whenever you like.", role="assistant", kind="message"),
            ]
        )
        best, *_ = await handle.search("Which company do I work for?", explain=True)
    assert best.record.kind == "fact"
    assert best.components is not None
    assert best.components["role"].weighted > 0


WORDS = ("ferry", "pier", "roses", "clock", "harbour")
RECORDS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=40),
        st.sampled_from(("ann", "bo", None)),
        st.sampled_from((0, FROM_USER, FROM_ASSISTANT)),
        st.sampled_from((None, "one", "two")),
        st.floats(-1, 1, width=32),
    ),
    min_size=1,
    max_size=12,
)
ASKED = st.sampled_from(
    (
        "When did I see the ferry?",
        "what did you say about roses to Ann on 1 January 1970",
        "clock of Bo",
        "now, my pier?",
    )
)


@given(RECORDS, ASKED, st.sampled_from((0.0, 0.5, 1.0)))
def test_nothing_is_added_to_a_record_without_evidence_and_never_more_than_the_weights(
    records: list[tuple[list[str], str | None, int, str | None, float]], asked: str, known: float
) -> None:
    """Evidence is what a record's words, vector, neighbors and session say; the rest are shares."""
    index = OwnerIndex(None)
    index.extend(
        [
            Entry(n, pack(text), flags, len(text), session, author, n, None, active=True)
            for n, (text, author, flags, session, _) in enumerate(records)
        ],
        (),
    )
    near = np.array([cosine for *_, cosine in records], np.float32)
    request = SearchRequest(text=asked, limit=len(records), mode="hybrid", where=Where(), explain=True, floor=False)
    found = rank(index, parse(asked), Cosines(near, Unrelated(0.05, 0.1), known), request, now=0, allowed=None)
    priors = {"speaker": HINT, "date": HINT, "role": ROLE, "length": LENGTH}
    for parts in found.components or ():
        evidence = sum(parts[name].weighted for name in ("cosine", "bm25", "neighbor", "session") if name in parts)
        share = min(max(evidence / chance(max(len(records), FEWEST)), 0), 1)
        assert all(parts[name].weighted <= most * share + 1e-4 for name, most in priors.items() if name in parts)
