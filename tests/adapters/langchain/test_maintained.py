"""The effect of maintenance on a conversation whose history LangChain shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from langchain_core.messages import HumanMessage

from memory_core import BoundMemory, MaintainPolicy, Memory, Patch, Where, maintain
from memory_core.lifecycle import ExtractiveSummarizer
from memory_langchain import MemoryChatMessageHistory

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SAID = [HumanMessage(f"Boat {n} sails to harbour {n} at noon", id=f"m{n}") for n in range(12)]


async def compacted() -> tuple[Memory, BoundMemory, MemoryChatMessageHistory]:
    now = [NOW]
    memory = Memory(":memory:", embedder=None, clock=lambda: now[0])
    ann = memory.bind(user="ann")
    history = MemoryChatMessageHistory(ann, "monday")
    await history.aadd_messages(SAID)
    now[0] = NOW + timedelta(days=100)
    await maintain(ann, MaintainPolicy(compact_after=30), summarizer=ExtractiveSummarizer())
    assert (await ann.stats()).by_state == {
        "active": 1,
        "compacted": 12,
        "archived": 1,
    }  # the note of what the summary was made of
    return memory, ann, history


async def test_a_history_shows_compacted_messages_and_recognises_them() -> None:
    memory, ann, history = await compacted()
    assert await history.aget_messages() == SAID
    await history.aadd_messages([*SAID[-2:], HumanMessage("And boat 12?", id="m12")])
    assert [message.id for message in await history.aget_messages()] == [f"m{n}" for n in range(13)]
    assert (await ann.stats()).by_state == {"active": 2, "compacted": 12, "archived": 1}
    await memory.close()


async def test_clearing_a_history_deletes_its_messages_in_every_state_and_their_summary() -> None:
    memory, ann, history = await compacted()
    first = (await ann.list(where=Where(states=["compacted"]), order="oldest")).records[0]
    await ann.update(first.id, Patch(state="archived"))
    await history.aclear()
    assert await history.aget_messages() == []
    left = (await ann.list(where=Where(states=["active", "compacted", "archived"]))).records
    assert left == ()  # nor the note of what was read: all that it names is gone
    await memory.close()
