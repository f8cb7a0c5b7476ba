"""The best hit that says more than the question stands in the block, in any language and whoever wrote it."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Draft, Memory, Message, RecallOptions, Role
from memory_core.concurrency.sync import run_sync

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


@pytest.mark.parametrize("text", ["Will feeds the cats", "So not the cats of Rolf, but the dog", "Can feeds the cats"])
async def test_an_answer_that_begins_as_a_question_does_is_not_left_out_as_one(text: str) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="crew")
        record = await chat.add(Draft(text, author="Ida", role="user"))
        await chat.add_many([Draft(f"The cats of weir {n} were fed", author=f"author{n % 4}") for n in range(FILLER)])
        best = [hit.record.id for hit in await chat.search("Who feeds the cats?", limit=3)]
        recalled = await chat.recall("Who feeds the cats?", RecallOptions(max_chars=2_000))
        assert {record.id, *best} <= {each.id for each in recalled.records}
