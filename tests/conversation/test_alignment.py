"""A message that is said again in a conversation without ids is stored again, and one that is only passed again is
not."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import BoundMemory, Memory, run_sync
from memory_core.conversation.messages.alignment import known_messages

pytestmark = pytest.mark.uncovered

Turn = list[tuple[str, str]]

QUESTIONS = ("hi", "turn on the light")
ANSWERS = ("Hello!", "Which room?")
RESULTS = ("on", "broken")


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A question, the results of a tool, an answer: of so few texts that they recur all the time."""
    results = draw(st.lists(st.sampled_from(RESULTS), max_size=2))
    answered = [("tool", result) for result in results]
    return [("user", draw(st.sampled_from(QUESTIONS))), *answered, ("assistant", draw(st.sampled_from(ANSWERS)))]


CONVERSATIONS = st.lists(turns(), min_size=1, max_size=8)


def joined(conversation: list[Turn]) -> Turn:
    return [message for turn in conversation for message in turn]


def stored(ann: BoundMemory) -> Turn:
    page = run_sync(ann.list, order="oldest", limit=1_000)
    return [(record.role or "", record.text) for record in page.records]


def turns_in(messages: Turn) -> list[Turn]:
    turns: list[Turn] = []
    for is_answer, some in groupby(messages, key=lambda message: message[0] != "user"):
        if is_answer and turns:
            turns[-1].extend(some)
        else:
            turns.append(list(some))
    return turns


def holds(stored: Turn, turn: Turn) -> bool:
    """True if these messages are stored within one turn, in order."""

    def is_within(whole: Turn) -> bool:
        rest = iter(whole)
        return all(message in rest for message in turn)

    return any(is_within(whole) for whole in turns_in(stored))


@given(CONVERSATIONS, st.data())
def test_a_conversation_that_is_passed_as_a_whole_each_time_is_stored_as_it_was_said(
    conversation: list[Turn], data: st.DataObject
) -> None:
    said = joined(conversation)
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann", session="monday")
        passed = sorted(data.draw(st.lists(st.integers(1, len(said)), max_size=5)))
        for end in [*passed, len(said), *data.draw(st.permutations(passed))]:
            run_sync(ann.remember, said[:end])
        assert stored(ann) == said


@given(CONVERSATIONS, st.integers(0, 3))
def test_a_turn_that_was_not_said_before_is_stored_whole_and_last_whatever_is_passed_before_it(
    conversation: list[Turn], before: int
) -> None:
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann", session="monday")
        for n, turn in enumerate(conversation):
            known = stored(ann)
            if before and known != joined(conversation[:n]):
                break  # what is passed before the turn counted as a repetition, so it tells nothing
            for _ in range(2):  # the second time because the client saw no answer
                run_sync(ann.remember, joined(conversation[max(0, n - before) : n + 1]))
                assert stored(ann) == known + turn or (holds(known, turn) and stored(ann) == known)


@given(CONVERSATIONS, st.data())
def test_what_was_deleted_stays_deleted_when_the_whole_conversation_is_passed_again(
    conversation: list[Turn], data: st.DataObject
) -> None:
    said = joined(conversation)
    with Memory(":memory:", embedder=None) as memory:
        ann = memory.bind(app="chat", user="ann", session="monday")
        records = run_sync(ann.remember, said)
        deleted = data.draw(st.sets(st.integers(0, len(said) - 1)))
        for place in deleted:
            run_sync(ann.delete, records[place].id)
        goes_on = data.draw(turns())
        for passed in (said, said + goes_on, said + goes_on):
            run_sync(ann.remember, passed)
        assert stored(ann) == [message for place, message in enumerate(said) if place not in deleted] + goes_on


def test_of_an_empty_conversation_nothing_is_known() -> None:
    assert known_messages([], [], is_complete=True) == {}


class Compared(str):
    """Counts how often such a text was compared with another one."""

    __slots__ = ()
    __hash__ = str.__hash__
    times: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("place", [1, 150, 299])
@pytest.mark.parametrize("answers", [[], ["Hello!"]])
def test_one_new_message_among_many_equal_ones_is_not_looked_for_everywhere(place: int, answers: list[str]) -> None:
    turn = [("user", "hi"), *(("assistant", each) for each in answers)]
    given = [(role, Compared(text)) for role, text in turn * 300]
    stored = [(role, Compared(text)) for role, text in turn * 600]
    given[place * len(turn)] = ("user", Compared("turn on the light"))
    Compared.times = 0
    known = known_messages(given, stored, is_complete=False)
    assert len(known) == len(given) - len(turn)
    assert Compared.times < 30 * (len(given) + len(stored))
