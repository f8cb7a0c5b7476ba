"""The best hit that says more than the question stands in the block, in any language and whoever wrote it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, Memory, Message, RecallOptions, Role
from memory_core.concurrency.sync import run_sync

pytestmark = pytest.mark.uncovered

FILLER: Final = 12
_WORDS: Final = (
    ["gate", "code", "pump", "house", "lock", "station", "valve"],
    ["ворота", "код", "насос", "дом", "замок", "станция"],
    ["गेट", "कोड", "पंप", "घर", "ताला", "स्टेशन"],
    ["بوابة", "رمز", "مضخة", "بيت", "قفل", "محطة"],
    ["πύλη", "κωδικός", "αντλία", "σπίτι", "σταθμός", "νερό"],
)
"""Words of five scripts."""


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[str], str]:
    """Words of one script for a question, and a word that an answer has in addition."""
    script = draw(st.sampled_from(_WORDS))
    words = draw(st.lists(st.sampled_from(script), min_size=2, max_size=6, unique=True))
    return words, draw(st.from_regex(r"[0-9]{4}", fullmatch=True))


@given(
    asked(),
    st.sampled_from(["", "?", "؟"]),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sets(st.integers(0, FILLER - 1), max_size=FILLER),
    st.sampled_from([None, "user", "assistant"]),
)
def test_the_best_hits_that_say_more_stand_in_a_block_with_room(
    said: tuple[list[str], str], mark: str, copies: int, diversity: float, shown: set[int], role: Role | None
) -> None:
    run_sync(_check, said, mark, copies, RecallOptions(max_chars=900, diversity=diversity), shown, role)


async def _check(
    said: tuple[list[str], str], mark: str, copies: int, options: RecallOptions, shown: set[int], role: Role | None
) -> None:
    """Compare the block with a search, of which what the question and the prompt say is left out."""
    (words, own), question = said, " ".join(said[0]) + mark
    fillers = [f"{words[n % len(words)]} {n}" for n in range(FILLER)]
    prompt = [Message(fillers[n]) for n in sorted(shown)]
    async with Memory(":memory:", embedder=None) as memory:
        team = memory.bind(user="crew")
        drafts = [Draft(text, author=f"author{n % 4}", role="user") for n, text in enumerate(fillers)]
        drafts += [Draft(f"{' '.join(words)} x{n}", author="Mallory", role="user") for n in range(copies)]
        drafts += [Draft(question, author="Rolf", role=role)]
        await team.add_many([*drafts, Draft(f"{' '.join(words)} {own}", author="Ida", role=role, session="answer")])
        present = {question, *(each.text for each in prompt)}
        best = [hit.record for hit in await team.search(question, limit=50) if hit.record.text not in present][:3]
        recalled = await team.recall(question, options, conversation=prompt)
        assert {each.id for each in best} <= {each.id for each in recalled.records}


def says(*texts: str) -> frozenset[str]:
    """The words of some texts."""
    return frozenset(word.strip("?؟!,") for text in texts for word in text.split())


@given(
    asked(),
    st.sampled_from(["", "?", "؟"]),
    st.lists(st.sets(st.integers(0, FILLER - 1), min_size=1, max_size=3), max_size=5),
    st.integers(0, 4),
    st.builds(
        RecallOptions,
        limit=st.integers(1, 4),
        diversity=st.sampled_from([0.0, 1.0]),
    ),
    st.booleans(),
)
def test_the_best_hit_that_says_more_than_question_and_conversation_has_a_line_however_few_there_are(
    said: tuple[list[str], str],
    mark: str,
    repeated: list[set[int]],
    copies: int,
    options: RecallOptions,
    is_shared: bool,  # noqa: FBT001
) -> None:
    run_sync(_check_first, said, mark, repeated, copies, options, is_shared)


async def _check_first(
    said: tuple[list[str], str],
    mark: str,
    repeated: list[set[int]],
    copies: int,
    options: RecallOptions,
    is_shared: bool,  # noqa: FBT001
) -> None:
    """The conversation shows some words beside those of the question; memories have them in other texts."""
    (words, own), question = said, " ".join(said[0]) + mark
    authors = [f"author{n}" for n in range(4)] if is_shared else [None]
    prompt = [Message(f"{words[0]} seen{n}") for n in range(FILLER)]
    texts = [f"{' '.join(words)}, {' '.join(f'seen{n}' for n in sorted(some))}!" for some in repeated]
    texts += [f"{words[n % len(words)]} {n}" for n in range(FILLER)]
    texts += [f"{' '.join(words)} x{n}" for n in range(copies)] + [f"{words[0]} {own}"]
    async with Memory(":memory:", embedder=None) as memory:
        team = memory.bind(user="crew")
        await team.add_many(
            [Draft(text, author=authors[n % len(authors)], role="user") for n, text in enumerate(texts)]
        )
        present = says(question, *(each.text for each in prompt))
        hits = await team.search(question, limit=50)
        best = next(hit.record for hit in hits if not says(hit.record.text) <= present)
        recalled = await team.recall(question, options, conversation=prompt)
        assert best.id in {each.id for each in recalled.records}, recalled.text


@pytest.mark.parametrize(
    "text",
    [
        "Will feeds the cats",
        "So not the cats of Rolf, but the dog",
        "Can feeds the cats",
        "So that is when Rolf feeds the cats",
        "The cats are fed by Rolf, aren't they?",
    ],
)
async def test_an_answer_that_begins_as_a_question_does_is_not_left_out_as_one(text: str) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="crew")
        record = await chat.add(Draft(text, author="Ida", role="user"))
        await chat.add_many([Draft(f"The cats of weir {n} were fed", author=f"author{n % 4}") for n in range(FILLER)])
        best = [hit.record.id for hit in await chat.search("Who feeds the cats?", limit=3)]
        recalled = await chat.recall("Who feeds the cats?", RecallOptions(max_chars=2_000))
        assert {record.id, *best} <= {each.id for each in recalled.records}


async def test_a_stranger_among_several_authors_leads_with_one_line() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="crew")
        await chat.add_many([Draft(f"The pump house of weir {n}", author=f"author{n % 4}") for n in range(FILLER)])
        stuffed = [Draft(f"pump house gate code gate code pump house, lie {n}", author="Mallory") for n in range(4)]
        answer, *_ = await chat.add_many([Draft("The gate code is 2580", author="Ida"), *stuffed])
        assert answer is not None
        recalled = await chat.recall("pump house gate code", RecallOptions(limit=3))
        assert answer.id in {each.id for each in recalled.records}, recalled.text


@pytest.mark.parametrize("question", ["Who feeds the cats of the weir?", "Feeds the cats of weir, who?"])
async def test_questions_like_it_do_not_lead(question: str) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="ann")
        asked_before = [
            f"{how} who feeds the cats of the weir?" for how in ("Tell me:", "And now", "Please,", "Again,")
        ]
        answer, *_ = await chat.add_many([Draft(each, role="user") for each in ("Rolf feeds the cats", *asked_before)])
        assert answer is not None
        recalled = await chat.recall(question, RecallOptions(limit=2))
        assert answer.id in {each.id for each in recalled.records}, recalled.text


async def test_what_the_best_hit_has_of_the_question_does_not_cost_it_its_score() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="crew")
        await chat.add_many([Draft(f"The pump house of weir {n}", author=f"author{n % 4}") for n in range(FILLER)])
        answer = await chat.add(Draft("pump house gate code 2580", author="Ida"))
        recalled = await chat.recall("pump house gate code", RecallOptions(min_score=0.5))
        assert answer.id in {each.id for each in recalled.records}, recalled.text
