"""The memories that a turn recalls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from memory_core import PUSHED, BoundMemory, Draft, Memory, RecallOptions
from memory_core.adapting import (
    PINNED,
    Asked,
    Conversations,
    Visible,
    before_prompt,
    block_of_turn,
    check_seconds,
)
from memory_core.errors import InvalidInputError
from memory_core.records.kinds import MESSAGE_KIND


@pytest_asyncio.fixture
async def memory() -> AsyncIterator[Memory]:
    async with Memory(":memory:", embedder=None) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> BoundMemory:
    return memory.bind(app="demo", user="ann")


async def test_all_that_the_prompt_does_not_show_can_be_recalled(ann: BoundMemory) -> None:
    records = await ann.add_many([f"tea {n}" for n in range(60)])
    shown = {record.id for record in records if record is not None} - {records[7].id if records[7] else ""}
    asked = Asked("tea", shows=lambda record: record.id in shown)
    found = await block_of_turn(ann, asked, RecallOptions(limit=3))
    assert [hit.record.text for hit in found.hits] == ["tea 7"]


async def test_a_question_of_any_length_is_searched_for(ann: BoundMemory) -> None:
    await ann.add("Ann drinks tea")
    assert len((await block_of_turn(ann, Asked("Which tea? " * 50_000), RecallOptions())).hits) == 1


@pytest.mark.parametrize(("limit", "count"), [(2, 2), (0, 0)])
async def test_the_options_say_how_many(ann: BoundMemory, limit: int, count: int) -> None:
    await ann.add_many([f"Ann drinks tea number {n}" for n in range(5)])
    found = await block_of_turn(ann, Asked("Which tea?"), RecallOptions(limit=limit))
    assert len(found.hits) == count


async def test_the_profile_comes_first_unless_nothing_is_pushed(ann: BoundMemory) -> None:
    await ann.add(Draft("Answer briefly", tags=[PINNED], role="user"))
    assert "Answer briefly" in (await block_of_turn(ann, Asked("Hello"), PUSHED)).text
    assert not (await block_of_turn(ann, Asked("Hello"), replace(PUSHED, limit=0))).text


async def test_a_session_of_the_same_name_in_another_space_is_recalled(memory: Memory, ann: BoundMemory) -> None:
    team = memory.bind(app="demo", user="team")
    tea = [f"The team drinks jasmine tea number {n}" for n in range(40)]
    await ann.add_many([Draft(text.replace("The team", "Ann"), session="monday", role="user") for text in tea])
    await team.add_many([Draft(text, session="monday", role="user") for text in tea])
    block = await before_prompt(ann.sharing({"team": team}), "Who drinks jasmine tea?", "monday")
    assert "The team drinks" in block
    assert "Ann drinks" not in block


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", None, True])
def test_a_wait_is_a_number_of_seconds(seconds: object) -> None:
    with pytest.raises(InvalidInputError, match=r"timeout must be a number of seconds above 0, such as 5, not"):
        check_seconds("timeout", seconds)


@pytest.mark.parametrize("shown", [5, 150])
async def test_of_a_conversation_all_is_recalled_that_its_prompt_does_not_show(
    memory: Memory, ann: BoundMemory, shown: int
) -> None:
    """A message, a fact, and a message in a space with a session of the same name."""
    conversation = Conversations("test", "a test", options=replace(PUSHED, limit=3)).of(ann, "monday")
    said = [f"Ann drinks jasmine tea number {n}" for n in range(shown + 1)]
    keys = [conversation.key(str(n)) for n in range(shown + 1)]
    drafts = [Draft(text, role="user", kind=MESSAGE_KIND, source_key=key) for text, key in zip(said, keys, strict=True)]
    await conversation.remember(drafts)
    await conversation.settled()
    await ann.add(Draft("Ann drinks jasmine tea from a red cup", session="monday"))
    block = await conversation.recall("Which tea does Ann drink?", Visible(keys[1:]))
    assert said[0] in block
    assert "red cup" in block
    assert said[1] not in block
    team = memory.bind(app="demo", user="team")
    await team.add(Draft("The team drinks jasmine tea", session="monday", source_key="theirs"))
    shared = Conversations("test", "a test", options=replace(PUSHED, limit=5)).of(ann.sharing({"team": team}), "monday")
    assert "The team drinks" in await shared.recall("Who drinks jasmine tea?", Visible(keys[1:]))
