"""Conversations: `remember` and `recall`."""

# ruff: noqa: S101  (a contract is made of assertions)

from __future__ import annotations

from datetime import timedelta

from memory_core import BoundMemory, Message, RecallOptions, Where, run_sync
from memory_core.testing.base import Contract, Ticks, everything

SAID = [
    ("user", "My favourite tea is jasmine"),
    ("assistant", "Noted."),
    ("user", "And my dog is called Rex"),
    ("assistant", "Noted."),
]


class ConversationContract(Contract):
    """Storing messages, and recalling them as a block for a prompt."""

    def test_a_conversation_in_parts_and_again_is_stored_once(self, ann: BoundMemory, clock: Ticks) -> None:
        for part in (SAID[:2], SAID[2:], SAID, SAID[1:]):
            clock.advance(minutes=1)
            run_sync(ann.remember, part, session="monday")
        stored = sorted(everything(ann), key=lambda record: record.occurred_at)
        assert [(record.role, record.text) for record in stored] == SAID
        assert {(record.kind, record.session) for record in stored} == {("message", "monday")}

    def test_messages_with_ids_are_recognised_by_them(self, ann: BoundMemory, clock: Ticks) -> None:
        said = [Message("yes", id=str(number), occurred_at=clock.now) for number in range(3)]
        for _ in range(2):
            run_sync(ann.remember, said, session="monday")
        assert [record.text for record in everything(ann)] == ["yes"] * 3

    def test_a_block_shows_the_fact_and_not_the_question(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.remember, SAID, session="monday")
        clock.advance(days=1)
        run_sync(ann.remember, [("user", "Which tea is my favourite?")], session="tuesday")
        recalled = run_sync(ann.recall, "which tea is my favourite", max_chars=500)
        assert recalled.records[0].text == SAID[0][1]
        assert "Which tea" not in recalled.text
        assert len(recalled.text) <= 500

    def test_conditions_bound_a_block(self, ann: BoundMemory, clock: Ticks) -> None:
        run_sync(ann.remember, SAID, session="monday")
        later = Where(since=clock.now + timedelta(days=1))
        assert not run_sync(ann.recall, "tea", RecallOptions(floor=False, where=later))
        recalled = run_sync(ann.recall, "tea", RecallOptions(floor=False, where=Where(roles=["assistant"])))
        assert {record.role for record in recalled.records} == {"assistant"}
