"""The laws of every block, over generated chats with short questions and replies, repetitions and corrections."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import BoundMemory, Memory, Message, Recalled, RecallOptions, run_sync
from memory_core.retrieval.analysis import analyse
from memory_core.retrieval.equal_texts import equal_form

pytestmark = pytest.mark.uncovered

QUERY: Final = "Which tea does Noor drink at the harbour?"
SAID: Final = st.sampled_from(
    [
        "Which tea does Noor drink?",
        "Which tea?",
        "At the harbour?",
        "Jasmine",
        "jasmine!",
        "Noor drinks jasmine tea at the harbour",
        "Noor doesn't drink jasmine tea at the harbour",
        "Tea drinks Noor at the harbour jasmine",
        "Can you remember that Noor keeps the tea behind locker 4417?",
        "Noor likes tea, her starter is called Gerald. Which harbour did you mean?",
        "The harbour in Ostend, since May",
        "You said that Noor drinks jasmine tea.",
        "No, oolong now",
        "hi",
    ]
) | st.text(st.sampled_from("tea harbour Noor? 47!"), max_size=40)
CHATS: Final = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from(["Ann", "Tom", None]), SAID), max_size=14
)


def recalled(chat: list[tuple[Any, str | None, str]], **options: Any) -> Recalled:
    with Memory(":memory:", embedder=None) as memory:
        handle: BoundMemory = memory.bind(app="chat", user="ann")
        run_sync(handle.remember, [Message(text, role=role, author=author) for role, author, text in chat])
        return run_sync(handle.recall, QUERY, RecallOptions(floor=False, **options), explain=True)


@given(CHATS, st.booleans())
def test_a_hit_is_left_out_only_if_the_query_and_a_shown_line_say_all_of_it(chat: list[Any], neighbors: bool) -> None:  # noqa: FBT001
    found = recalled(chat, max_chars=100_000, neighbors=neighbors)
    found_records = {each.hit.record.id: each.hit.record for each in found.considered}
    for each in found.considered:
        record, of = each.hit.record, found_records.get(each.of or "")
        if each.reason == "question":
            assert set(analyse(record.text)) <= set(analyse(QUERY))
        elif each.reason == "duplicate":
            assert of is not None
            assert equal_form(record.text) == equal_form(of.text)
            people = {one.author for one in (record, of) if one.role == "user" and one.author is not None}
            assert len(people) < 2
        else:
            assert each.reason == "shown", each


@given(CHATS, st.integers(300, 1_500), st.sampled_from([None, 1, 2, 5]))
def test_the_three_best_hits_have_lines_if_there_is_room_and_every_outcome_is_true(
    chat: list[Any], max_chars: int, limit: int | None
) -> None:
    found = recalled(chat, max_chars=max_chars, limit=limit)
    shown = {record.id for record in found.records}
    assert {each.hit.record.id for each in found.considered if each.reason == "shown"} <= shown
    assert {hit.record.id for hit in found.hits} <= shown
    telling = [each for each in found.considered if each.reason in ("shown", "budget", "limit")]
    if max_chars >= 1_000 and limit is None:
        assert all(each.reason == "shown" for each in telling[:3])
    left_out = {each.hit.record.id for each in telling if each.reason != "shown"}
    assert not left_out & {hit.record.id for hit in found.hits}
    assert limit is None or len(found.hits) <= limit


@given(CHATS)
def test_neighbors_take_no_line_away(chat: list[Any]) -> None:
    alone = {equal_form(record.text) for record in recalled(chat, max_chars=100_000, neighbors=False).records}
    beside = {equal_form(record.text) for record in recalled(chat, max_chars=100_000).records}
    assert alone <= beside
