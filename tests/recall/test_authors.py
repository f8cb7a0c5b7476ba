"""In a chat of several people nobody buys the block, and nothing is lost to a person who is trusted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import PULLED, Draft, Hit, Memory, Patch, RecallOptions, Scope
from memory_core.recall.authors import COMPARABLE, FEWEST_AUTHORS, in_fair_order
from memory_core.recall.line import Line
from memory_core.records.draft_to_record import complete
from tests.recall.poison import copies, measure

NOW = datetime(2026, 5, 4, tzinfo=UTC)
QUESTION = "Where is the spare key of the boat house?"
FACT = "It hangs behind the oars, third hook from the left"


def line(author: str, worth: float, number: int) -> Line:
    record = complete(Draft(f"text {number}", id=f"{number}", author=author), Scope(app="a", user="u"), NOW)
    return Line(Hit(record, worth, None), worth, record.text)


LINES = st.lists(st.tuples(st.sampled_from(["Ann", "Tom", "Mallory"]), st.floats(0.1, 20)), max_size=15)


@given(LINES)
def test_an_order_loses_no_line_and_a_third_is_exceeded_only_where_nobody_else_is_comparable(
    said: list[tuple[str, float]],
) -> None:
    lines = [line(author, worth, n) for n, (author, worth) in enumerate(sorted(said, key=lambda each: -each[1]))]
    order, gave_way = in_fair_order(lines, lambda record: record.author == "Ann")
    assert sorted(each.record.id for each in order) == sorted(each.record.id for each in lines)
    assert not gave_way & {each.record.id for each in lines if each.record.author == "Ann"}
    for place, each in enumerate(order):
        held = sum(one.record.author == each.record.author for one in order[:place])
        if each.record.author == "Ann" or held * FEWEST_AUTHORS < place + 1:
            continue
        full = {
            author
            for author in ("Tom", "Mallory")
            if sum(one.record.author == author for one in order[:place]) * FEWEST_AUTHORS >= place + 1
        }
        others = [one for one in order[place + 1 :] if one.record.author not in full]
        assert all(one.worth < COMPARABLE * each.worth for one in others)


@pytest.mark.parametrize(("trusted", "is_stranger"), [((), True), (("Mallory",), False), (("user",), False)])
async def test_copies_of_the_question_do_not_drive_the_fact_out(trusted: tuple[str, ...], is_stranger: bool) -> None:  # noqa: FBT001
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="family")
        said = [
            ("Tom", "Where is the boat house?"),
            ("Rosa", f"The spare key? {FACT}"),
            ("Ben", "The boat house is dry"),
        ]
        await chat.add_many(
            [Draft(text, author=author, role="user", session="room") for author, text in said]
            + [Draft(text, author="Mallory", role="user", session="room") for text in copies(QUESTION)]
        )
        recalled = await chat.recall(QUESTION, RecallOptions(max_chars=400, trusted=trusted), explain=True)
        assert FACT in recalled.text
        reasons = {each.reason for each in recalled.considered if each.hit.record.author == "Mallory"}
        assert ("copy" in reasons) is is_stranger


async def test_in_a_dialogue_nobody_has_a_share() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="family")
        await chat.add_many([Draft(f"boat {n}", author="Tom", role="user", session="room") for n in range(6)])
        await chat.add(Draft("boat house", author="Ann", role="user", session="room"))
        recalled = await chat.recall("boat", RecallOptions(limit=6), explain=True)
        assert "author" not in {each.reason for each in recalled.considered}


async def test_what_the_owners_agents_wrote_has_no_share() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="family")
        noted = [Draft(f"boat note {n}", author="scribe", agent="scribe", session="room") for n in range(6)]
        said = [Draft(f"boat reply {n}", author="helper", role="assistant", session="room") for n in range(6)]
        others = [Draft(f"boat of {who}", author=who, role="user", session="room") for who in ("Tom", "Ben", "Rosa")]
        await chat.add_many([*noted, *said, *others])
        recalled = await chat.recall("boat", RecallOptions(limit=6), explain=True)
        gave_way = {each.hit.record.author for each in recalled.considered if "author" in (each.reason, each.later)}
        assert not gave_way & {"scribe", "helper"}


async def test_whom_the_owner_has_answered_has_no_share_and_comes_before_a_stranger() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        chat = memory.bind(user="Ann")

        async def say(author: str, text: str, session: str = "room") -> None:
            await chat.add(Draft(text, author=author, role="user", kind="message", session=session))

        for n in range(4):
            await say("Tom", f"boat note {n}")
        await say("Ann", "Thanks, all of you")
        await say("Mallory", "boat boat, the boat note of Mallory")
        for n in range(4):
            await say("Rosa", f"boat list {n}", "elsewhere")
        recalled = await chat.recall("boat note", RecallOptions(), explain=True)
        gave_way = {each.hit.record.author for each in recalled.considered if each.later == "author"}
        assert recalled.hits[0].record.author == "Tom"
        assert "Tom" not in gave_way
        assert "Mallory" in gave_way


@pytest.mark.parametrize(("trusted", "gives_way"), [((), True), (("Ann L.",), False)])
async def test_another_name_of_the_owner_is_trusted_if_the_caller_says_so(
    trusted: tuple[str, ...],
    gives_way: bool,  # noqa: FBT001
) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        said = [("Ann L.", f"boat note {n}") for n in range(6)]
        await ann.add_many(Draft(text, author=author, role="user", session="monday") for author, text in said)
        await ann.add_many([Draft("boat list"), Draft("boat of Rosa", author="Rosa", role="user")])
        recalled = await ann.recall("boat note", RecallOptions(trusted=trusted), explain=True)
        assert ("author" in {each.later for each in recalled.considered}) is gives_way


async def test_a_stranger_gives_way_only_to_a_line_that_is_comparable() -> None:
    asked = "Which nuts is the skipper of the blue boat allergic to?"
    async with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(user="ann")
        await ann.add(
            Draft("The skipper is allergic to cashew nuts, so never bake with them", author="Tom", role="user")
        )
        await ann.add(Draft("Rosa has another boat", author="Rosa", role="user"))
        noted = await ann.add("A boat was seen at noon from the pier, and the log says so")
        recalled = await ann.recall(asked, PULLED, limit=1)
        assert "cashew" in str(recalled)
        await ann.update(noted.id, Patch(text="The skipper is allergic to bees, says the log"))
        recalled = await ann.recall(asked, PULLED, limit=1)
        assert "bees" in str(recalled)


@pytest.mark.slow
async def test_a_stranger_drives_little_evidence_out_of_a_block() -> None:
    for answered in (False, True):
        for loss in (await measure(every=12, answered=answered)).values():
            assert loss.lost["copies"] <= 0.25 * loss.clean
            assert loss.lost["own words"] <= 0.3 * loss.clean
            assert max(loss.led["copies"], loss.led["stuffing"]) <= 0.1 * loss.asked
            assert answered or not loss.led["own words"]
