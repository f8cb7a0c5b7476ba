from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import Message, check_draft
from memory_core.adapting import turn_drafts
from memory_core.models import ROLES
from memory_core.values.json_text import json_bytes
from memory_core.values.limits import MAX_DATA_BYTES

CONVERSATIONS = st.lists(st.tuples(st.sampled_from(ROLES), st.text(alphabet="ab \n")), max_size=12).map(
    lambda said: [Message(text, role=role, id=str(number)) for number, (role, text) in enumerate(said)]
)


def test_an_exchange_is_a_question_with_all_its_answers() -> None:
    said = [
        Message("Which tea?", author="ann", id="1"),
        Message("Jasmine.", role="assistant", author="waiter", id="2"),
        Message("Or mint.", role="assistant", author="cook", id="3"),
        Message("Mint then", id="4"),
    ]
    turn, unanswered = turn_drafts(said, session="s1", data={"invocation_id": "i"})
    assert (turn.kind, turn.text) == ("conversation_turn", "User: Which tea?\nAssistant: Jasmine.\nOr mint.")
    assert (turn.session, turn.agent, turn.role, turn.author) == ("s1", "cook", None, None)
    assert turn.data == {
        "invocation_id": "i",
        "user_message": "Which tea?",
        "agent_response": "Jasmine.\nOr mint.",
    }
    assert (unanswered.kind, unanswered.text, unanswered.role) == ("user_query", "Mint then", None)


def test_a_question_and_its_exchange_are_one_record_so_that_one_deletion_forgets_both() -> None:
    asked, answered = Message("The code is 4711", id="1"), Message("Noted: 4711.", role="assistant", id="2")
    (before,), (after,) = turn_drafts([asked], session="s"), turn_drafts([asked, answered], session="s")
    assert before.source_key == after.source_key


def test_what_tools_returned_and_instructions_are_messages_beside_the_exchange() -> None:
    said = [
        Message("Be brief", role="system", id="1"),
        Message("Which tea?", id="2"),
        Message("jasmine, mint", role="tool", author="menu", id="3"),
        Message("Mint.", role="assistant", author="waiter", id="4"),
    ]
    drafts = turn_drafts(said)
    assert [(draft.role, draft.kind, draft.author, draft.text) for draft in drafts] == [
        ("system", "message", "system", "Be brief"),
        (None, "conversation_turn", None, "User: Which tea?\nAssistant: Mint."),
        ("tool", "message", "menu", "jasmine, mint"),
    ]
    (greeting,) = turn_drafts([Message("Welcome", role="assistant", author="waiter")])
    assert (greeting.role, greeting.kind, greeting.agent) == ("assistant", "message", "waiter")


@given(CONVERSATIONS)
def test_every_text_is_in_a_draft_and_every_draft_can_be_stored(said: list[Message]) -> None:
    drafts = turn_drafts(said, session="s")
    for draft in drafts:
        check_draft(draft)
    for message in said:
        assert not message.text.strip() or any(message.text.strip() in draft.text for draft in drafts)


@given(CONVERSATIONS, st.integers(0, 12))
def test_a_conversation_that_has_grown_changes_no_key(said: list[Message], length: int) -> None:
    whole = [draft.source_key for draft in turn_drafts(said, session="s")]
    assert len(set(whole)) == len(whole)
    assert {draft.source_key for draft in turn_drafts(said[:length], session="s")} <= set(whole)
    assert not set(whole) & {draft.source_key for draft in turn_drafts(said, session="t")}


def test_without_ids_nothing_claims_to_be_known() -> None:
    drafts = turn_drafts([Message("a"), Message("b", role="assistant")])
    assert [draft.source_key for draft in drafts] == [None]


@pytest.mark.parametrize("character", ["a", "é", "茶", "🍵", '"'])
def test_a_turn_longer_than_a_memory_can_be_is_cut_rather_than_lost(character: str) -> None:
    for draft in turn_drafts([Message(character * 4_000_001), Message("b" * 4_000_001, role="assistant")]):
        check_draft(draft)
        assert json_bytes(draft.data) <= MAX_DATA_BYTES


def test_of_an_exchange_the_side_that_is_too_long_is_cut_and_the_other_one_stays_whole() -> None:
    for asked, answered in [(1_000_000, 3_500_000), (3_500_000, 1_000_000), (10, 8_000_000)]:
        said = [Message("a" * asked), Message("b" * answered, role="assistant")]
        data = turn_drafts(said, data={"channel": "web"})[-1].data
        sides = str(data["user_message"]), str(data["agent_response"])
        assert (len(sides[0]) == asked) == (asked < answered)
        assert (len(sides[1]) == answered) == (answered < asked)
        assert json_bytes(data) == MAX_DATA_BYTES


def test_the_questions_of_speakers_who_choose_the_same_id_are_two() -> None:
    asked = [Message("Which tea?", author=author, id="1") for author in ("Ann", "Mallory")]
    first, second = (turn_drafts([message], session="monday")[0].source_key for message in asked)
    assert first != second
